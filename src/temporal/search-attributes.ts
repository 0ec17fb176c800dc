import { setTimeout as sleep } from 'node:timers/promises';
import type { ConnectionLike } from '@temporalio/client';
import type { Logger } from '@temporalio/common';
import { FollowUpError } from '../contract/follow-up-error';
import { SEARCH_ATTRIBUTE_TYPES, type SearchAttributeName, SEARCH_ATTRIBUTES } from '../contract/names';
import { findGrpcError, hasGrpcStatus, isTransient } from './grpc-status';
import {
  isNamespaceNotFound,
  namespaceNotFoundError,
  notSetUpError,
  SearchAttributesError,
} from './server-error';

/** Values of `IndexedValueType` in Temporal's API. */
const INDEXED_VALUE_TYPES = { Keyword: 2, KeywordList: 7 } as const;

/**
 * The maximum wait until new attributes are listed, and until listed attributes can be used. The Temporal server's frontends cache the
 * attributes for 2 s, and for 60 s with Elasticsearch.
 */
const CACHE_TIMEOUT_MS = 75_000;

const CALL_TIMEOUT_MS = 10_000;

/**
 * Registers the missing search attributes of follow-ups in a namespace. If a workflow sets an attribute that is not registered,
 * its workflow task is retried indefinitely. Any number of processes can call the function at any time.
 *
 * Temporal Cloud and gateways reject the operator service, which lists the attributes. A visibility query that uses an attribute
 * then shows whether the attribute exists.
 *
 * @returns the names of the attributes that were missing before this call
 * @throws SearchAttributesError if an attribute has the wrong type, or if attributes are missing and could not be registered
 * @throws UnknownSearchAttributesError if the Temporal server rejects both the list and the queries
 */
export async function ensureSearchAttributes(
  connection: ConnectionLike,
  namespace: string,
): Promise<string[]> {
  const rejections: unknown[] = [];
  for (const lookUp of [findMissingInList, findMissingWithQueries]) {
    const findMissing = () => lookUp(connection, namespace);
    let missing: SearchAttributeName[];
    try {
      missing = await findMissing();
    } catch (error) {
      if (isNamespaceNotFound(error)) throw namespaceNotFoundError(namespace, error);
      // Any other gRPC error may be the rejection of a gateway, which can have any status.
      if (findGrpcError(error) === undefined) throw error;
      rejections.push(error);
      continue;
    }
    if (missing.length > 0) await register(connection, namespace, missing, findMissing);
    await waitUntilUsable(connection, namespace);
    return missing;
  }
  throw new UnknownSearchAttributesError(namespace, rejections);
}

/**
 * Thrown when it is unknown whether the search attributes exist, because the Temporal server rejects both ways to find out. The
 * attributes may exist, so a worker must not wait for them.
 */
class UnknownSearchAttributesError extends FollowUpError {
  declare readonly code: 'UNREACHABLE' | 'SERVER_ERROR';

  /** @param rejections the error of the list, and the error of the first query */
  constructor(namespace: string, rejections: readonly unknown[]) {
    const [list, query] = rejections.map((error) => findGrpcError(error)?.text ?? '');
    const message =
      `It is unknown whether the namespace ${namespace} has the search attributes of follow-ups, because the Temporal server ` +
      `rejects the calls ListSearchAttributes (${list}) and ListWorkflowExecutions (${query}). Permit one of the two calls. If an ` +
      'attribute is missing, the Temporal server rejects new follow-ups, and the error has the commands that register it.';
    super(isTransient(rejections[1]) ? 'UNREACHABLE' : 'SERVER_ERROR', message, { cause: rejections[1] });
  }
}

/** Returns whether an error is only that it is unknown whether the search attributes exist. */
export function isUnknownAttributesError(error: unknown): error is UnknownSearchAttributesError {
  return error instanceof UnknownSearchAttributesError;
}

/** The wait of a running worker between two attempts to find out whether the search attributes exist. */
const REPEAT_WAIT_MS = 60_000;

type AttributeLogger = Pick<Logger, 'info' | 'warn'>;

/**
 * Registers the missing search attributes for a worker. If it is unknown whether they exist, the worker starts with a warning. If
 * this is so because the Temporal server was not available, the call is repeated in the background.
 *
 * @param stop ends the repetition
 * @throws SearchAttributesError as `ensureSearchAttributes` does
 */
export async function prepareSearchAttributes(
  connection: ConnectionLike,
  namespace: string,
  logger: AttributeLogger,
  stop: AbortSignal,
): Promise<void> {
  try {
    await registerAndLogSearchAttributes(connection, namespace, logger);
  } catch (error) {
    if (!isUnknownAttributesError(error)) throw error;
    logger.warn(`the worker starts without a check of its search attributes: ${error.message}`);
    if (error.code === 'UNREACHABLE') void repeatUntilKnown(connection, namespace, logger, stop);
  }
}

/**
 * Registers the missing search attributes, and logs their names.
 *
 * @throws the errors of {@link ensureSearchAttributes}
 */
export async function registerAndLogSearchAttributes(
  connection: ConnectionLike,
  namespace: string,
  logger: AttributeLogger,
): Promise<void> {
  const registered = await ensureSearchAttributes(connection, namespace);
  if (registered.length > 0)
    logger.info(`search attributes registered: ${registered.join(', ')}`, { namespace });
}

/** Repeats the registration of a running worker until it is known whether the search attributes exist. */
async function repeatUntilKnown(
  connection: ConnectionLike,
  namespace: string,
  logger: AttributeLogger,
  stop: AbortSignal,
): Promise<void> {
  for (;;) {
    await sleep(REPEAT_WAIT_MS, undefined, { signal: stop, ref: false }).catch(() => undefined);
    if (stop.aborted) return;
    try {
      await registerAndLogSearchAttributes(connection, namespace, logger);
      return;
    } catch (error) {
      if (isUnknownAttributesError(error) && error.code === 'UNREACHABLE') continue;
      logger.warn(`search attributes: ${error instanceof Error ? error.message : String(error)}`);
      return;
    }
  }
}

async function register(
  connection: ConnectionLike,
  namespace: string,
  missing: readonly SearchAttributeName[],
  findMissing: () => Promise<SearchAttributeName[]>,
): Promise<void> {
  const names = missing.join(', ');
  const searchAttributes = Object.fromEntries(missing.map((name) => [name, toValueType(name)] as const));
  const add = () => connection.operatorService.addSearchAttributes({ namespace, searchAttributes });
  await withCallTimeout(connection, add).catch((error: unknown) => {
    const reason = findGrpcError(error)?.text;
    if (reason === undefined) throw error;
    const problem = `lacks the search attributes ${names}, and the Temporal server does not let this process register them`;
    throw notSetUpError(namespace, `${problem} (${reason})`, missing, error);
  });
  const deadline = performance.now() + CACHE_TIMEOUT_MS;
  // The Temporal server also accepts an addition that has no effect, for example of an existing name, so the loop checks it.
  while ((await findMissing()).length > 0) {
    if (performance.now() > deadline) {
      const problem = `lacks ${names} ${CACHE_TIMEOUT_MS / 1_000} s after they were registered`;
      throw notSetUpError(namespace, problem, missing);
    }
    await sleep(250);
  }
}

/** Waits until the Temporal server accepts the attributes in a query, and therefore also in a start. */
async function waitUntilUsable(connection: ConnectionLike, namespace: string): Promise<void> {
  const deadline = performance.now() + CACHE_TIMEOUT_MS;
  const isRejected = async () =>
    !(await isQueryValid(connection, namespace, SEARCH_ATTRIBUTES).catch((error: unknown) => {
      // The Temporal server may reject queries.
      if (findGrpcError(error) === undefined) throw error;
      return true;
    }));
  while ((await isRejected()) && performance.now() < deadline) await sleep(250);
}

/** @throws SearchAttributesError if an attribute has the wrong type, and the error of the call if the call is rejected */
async function findMissingInList(
  connection: ConnectionLike,
  namespace: string,
): Promise<SearchAttributeName[]> {
  const list = () => connection.operatorService.listSearchAttributes({ namespace });
  const { customAttributes } = await withCallTimeout(connection, list);
  const types: Record<string, number> = customAttributes;
  const wrong = SEARCH_ATTRIBUTES.filter((name) => name in types && types[name] !== toValueType(name));
  const needed = wrong.map((name) => `${name} (must be ${SEARCH_ATTRIBUTE_TYPES[name]})`);
  if (wrong.length > 0)
    throw new SearchAttributesError(
      `The namespace ${namespace} has search attributes with the wrong type: ${needed.join(', ')}. ` +
        'Remove or rename them (temporal operator search-attribute remove), or use another namespace.',
    );
  return SEARCH_ATTRIBUTES.filter((name) => !(name in types));
}

/**
 * Returns the attributes that a visibility query can't use: they are missing, or have another type. If an
 * attribute must be a KeywordList, the queries do not show that it is a Keyword.
 *
 * @throws the error of the call if the call is rejected
 */
async function findMissingWithQueries(
  connection: ConnectionLike,
  namespace: string,
): Promise<SearchAttributeName[]> {
  const canQuery = (names: readonly SearchAttributeName[]) => isQueryValid(connection, namespace, names);
  if (await canQuery(SEARCH_ATTRIBUTES)) return [];
  const areValid = await Promise.all(SEARCH_ATTRIBUTES.map((name) => canQuery([name])));
  return SEARCH_ATTRIBUTES.filter((_, index) => areValid[index] === false);
}

async function isQueryValid(
  connection: ConnectionLike,
  namespace: string,
  names: readonly SearchAttributeName[],
): Promise<boolean> {
  // STARTS_WITH is valid only for the type Keyword.
  const conditions = names.map(
    (name) => `${name} ${SEARCH_ATTRIBUTE_TYPES[name] === 'Keyword' ? 'STARTS_WITH' : '='} 'probe'`,
  );
  const request = { namespace, query: conditions.join(' AND '), pageSize: 1 };
  try {
    await withCallTimeout(connection, () => connection.workflowService.listWorkflowExecutions(request));
    return true;
  } catch (error) {
    if (hasGrpcStatus(error, 'INVALID_ARGUMENT')) return false;
    throw error;
  }
}

function toValueType(name: SearchAttributeName) {
  return INDEXED_VALUE_TYPES[SEARCH_ATTRIBUTE_TYPES[name]];
}

function withCallTimeout<T>(connection: ConnectionLike, call: () => Promise<T>): Promise<T> {
  return connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, call);
}
