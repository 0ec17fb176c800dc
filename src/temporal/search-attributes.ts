import { defineSearchAttributeKey } from '@temporalio/common';
import { type SearchAttributeName, SEARCH_ATTRIBUTES } from '../core/names';
import type { ConnectionLike } from '@temporalio/client';
import { grpcError, hasGrpcStatus } from './grpc-status';
import { transportError } from './transport-errors';
import { FollowUpError } from '../core/errors';

/** The names of Temporal's `IndexedValueType`, by value. */
const TYPE_NAMES = ['Unspecified', 'Text', 'Keyword', 'Int', 'Double', 'Bool', 'Datetime', 'KeywordList'];
const KEYWORD = 2;

/** Frontends keep a copy of the attributes for a while; a new one is known everywhere after some seconds at most. */
const VISIBLE_WITHIN_MS = 15_000;

/** One exchange with the server. */
const CALL_TIMEOUT_MS = 10_000;

export interface SearchAttributesReport {
  /** Made by this call. */
  readonly registered: string[];
  /** There before. */
  readonly present: string[];
}

/** Thrown when the search attributes of follow-ups are not there, and says what to do. */
export class SearchAttributesError extends FollowUpError {
  override readonly name = 'SearchAttributesError';

  constructor(message: string, options: ErrorOptions = {}) {
    super('NOT_SET_UP', message, options);
  }
}

/**
 * Makes sure that the namespace has the search attributes of follow-ups, all of type Keyword. A workflow that sets an
 * attribute which isn't registered does not fail: its task is retried for ever, without a word to its caller.
 *
 * Safe to call at any time, from any number of processes.
 *
 * @throws SearchAttributesError when one has another type, or when they are missing and may not be registered here
 */
export async function ensureSearchAttributes(
  connection: ConnectionLike,
  namespace: string,
): Promise<SearchAttributesReport> {
  const before = await readTypes(connection, namespace);
  refuseOtherTypes(before, namespace);
  const missing = SEARCH_ATTRIBUTES.filter((name) => !before.has(name));
  const present = SEARCH_ATTRIBUTES.filter((name) => before.has(name));
  if (missing.length > 0) await register(connection, namespace, missing);
  return { registered: missing, present };
}

/** What an operator runs where this process may not. */
export function registrationHelp(namespace: string, missing: readonly string[]): string {
  const commands = missing.map(
    (name) =>
      `  temporal operator search-attribute create --namespace ${namespace} --name ${name} --type Keyword`,
  );
  return [
    ...commands,
    'In Temporal Cloud, add them to the namespace in the web console, or with: tcld namespace search-attributes add ' +
      `--namespace ${namespace} ${missing.map((name) => `--search-attribute "${name}=Keyword"`).join(' ')}`,
  ].join('\n');
}

/** A start that failed for want of search attributes or for the transport, in words that help; any other error as it is. */
export function inSetUpWords(error: unknown, namespace: string): unknown {
  const refused = grpcError(error);
  if (refused?.status !== 'INVALID_ARGUMENT' || !/search attribute/i.test(refused.words)) {
    return transportError(error) ?? error;
  }
  const hint = registrationHelp(namespace, SEARCH_ATTRIBUTES);
  return new SearchAttributesError(
    `The namespace ${namespace} lacks search attributes that follow-ups need (${refused.words}). Nothing was started. ` +
      `Register them with the starter's command "setup", or run those of these that are missing:\n${hint}`,
    { cause: error },
  );
}

async function readTypes(connection: ConnectionLike, namespace: string): Promise<Map<string, number>> {
  try {
    const { customAttributes } = await bounded(connection, () =>
      connection.operatorService.listSearchAttributes({ namespace }),
    );
    return new Map(Object.entries(customAttributes));
  } catch (error) {
    if (hasGrpcStatus(error, 'NOT_FOUND')) throw noNamespace(namespace, error);
    if (!isRefused(error)) throw error;
    // Temporal Cloud has no operator service; an older operation lists the namespace's attributes there.
    return readTypesWithoutOperator(connection, namespace);
  }
}

async function readTypesWithoutOperator(
  connection: ConnectionLike,
  namespace: string,
): Promise<Map<string, number>> {
  try {
    const { keys } = await bounded(connection, () =>
      connection.withMetadata({ 'temporal-namespace': namespace }, () =>
        connection.workflowService.getSearchAttributes({}),
      ),
    );
    return new Map(Object.entries(keys));
  } catch (error) {
    if (!isRefused(error)) throw error;
    throw new SearchAttributesError(
      `The search attributes of the namespace ${namespace} can't be read here (${grpcError(error)?.words ?? ''}). ` +
        `Make sure that these exist:\n${registrationHelp(namespace, SEARCH_ATTRIBUTES)}`,
      { cause: error },
    );
  }
}

function refuseOtherTypes(types: ReadonlyMap<string, number>, namespace: string): void {
  const wrong = SEARCH_ATTRIBUTES.filter((name) => types.has(name) && types.get(name) !== KEYWORD);
  if (wrong.length === 0) return;
  const found = wrong.map((name) => `${name} is ${TYPE_NAMES[types.get(name) ?? 0] ?? 'of an unknown type'}`);
  throw new SearchAttributesError(
    `The namespace ${namespace} has search attributes of another type: ${found.join(', ')}; each must be Keyword. ` +
      'Remove or rename them (temporal operator search-attribute remove), or use a namespace of its own.',
  );
}

async function register(
  connection: ConnectionLike,
  namespace: string,
  missing: readonly SearchAttributeName[],
): Promise<void> {
  const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD] as const));
  try {
    await bounded(connection, () =>
      connection.operatorService.addSearchAttributes({ namespace, searchAttributes }),
    );
  } catch (error) {
    if (!isRefused(error)) throw error;
    throw new SearchAttributesError(
      `The namespace ${namespace} lacks the search attributes ${missing.join(', ')}, and the server does not let this ` +
        `process register them (${grpcError(error)?.words ?? ''}). Run:\n${registrationHelp(namespace, missing)}`,
      { cause: error },
    );
  }
  await untilVisible(connection, namespace, missing);
}

/** The server accepts an addition and says nothing when it is a no-op, for example of an existing name (measured). */
async function untilVisible(
  connection: ConnectionLike,
  namespace: string,
  missing: readonly SearchAttributeName[],
): Promise<void> {
  const deadline = Date.now() + VISIBLE_WITHIN_MS;
  for (;;) {
    const types = await readTypes(connection, namespace);
    refuseOtherTypes(types, namespace);
    const unseen = missing.filter((name) => !types.has(name));
    if (unseen.length === 0) return;
    if (Date.now() > deadline) {
      throw new SearchAttributesError(
        `The search attributes ${unseen.join(', ')} were registered, but the server does not list them after ` +
          `${VISIBLE_WITHIN_MS / 1_000} s. Look with: temporal operator search-attribute list --namespace ${namespace}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

function bounded<T>(connection: ConnectionLike, call: () => Promise<T>): Promise<T> {
  return connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, call);
}

function isRefused(error: unknown): boolean {
  return hasGrpcStatus(error, 'PERMISSION_DENIED', 'UNAUTHENTICATED', 'UNIMPLEMENTED');
}

function noNamespace(namespace: string, cause: unknown): SearchAttributesError {
  return new SearchAttributesError(
    `There is no namespace ${JSON.stringify(namespace)} on this server (TEMPORAL_NAMESPACE). ` +
      `Make it with: temporal operator namespace create --namespace ${namespace}`,
    { cause },
  );
}

export function keywordKey(name: SearchAttributeName) {
  return defineSearchAttributeKey(name, 'KEYWORD');
}
