import { setTimeout as sleep } from 'node:timers/promises';
import { SEARCH_ATTRIBUTES, type SearchAttributeName } from '../core/names';
import type { ConnectionLike } from '@temporalio/client';
import { grpcError, hasGrpcStatus } from './grpc-status';
import { noNamespace, notSetUp, SearchAttributesError } from './server-error';

/** Of Temporal's `IndexedValueType`. */
const KEYWORD = 2;

/** Frontends keep a copy of the attributes for a while; a new one is known everywhere after some seconds at most. */
const VISIBLE_WITHIN_MS = 15_000;

const CALL_TIMEOUT_MS = 10_000;

export interface SearchAttributesReport {
  /** Made by this call. */
  readonly registered: string[];
  /** There before. */
  readonly present: string[];
}

/**
 * Registers the search attributes of follow-ups where they are missing: the task of a workflow that sets one which isn't there
 * is retried for ever. Safe to call at any time, from any number of processes.
 *
 * @throws SearchAttributesError when one has another type, or when they are missing and may not be registered here
 */
export async function ensureSearchAttributes(
  connection: ConnectionLike,
  namespace: string,
): Promise<SearchAttributesReport> {
  const deadline = Date.now() + VISIBLE_WITHIN_MS;
  let registered: SearchAttributeName[] = [];
  for (;;) {
    const types = await readTypes(connection, namespace);
    const wrong = SEARCH_ATTRIBUTES.filter((name) => name in types && types[name] !== KEYWORD);
    if (wrong.length > 0)
      throw new SearchAttributesError(
        `The namespace ${namespace} has search attributes whose type is not Keyword: ${wrong.join(', ')}. ` +
          'Remove or rename them (temporal operator search-attribute remove), or use another namespace.',
      );
    const missing = SEARCH_ATTRIBUTES.filter((name) => !(name in types));
    if (missing.length === 0)
      return { registered, present: SEARCH_ATTRIBUTES.filter((name) => !registered.includes(name)) };
    // The server accepts an addition and says nothing when it is a no-op, for example of an existing name (measured).
    if (registered.length > 0 && Date.now() > deadline) {
      const problem = `does not list ${missing.join(', ')} ${VISIBLE_WITHIN_MS / 1_000} s after the registration`;
      throw notSetUp(namespace, problem, missing);
    }
    if (registered.length === 0) {
      await register(connection, namespace, missing);
      registered = missing;
    } else await sleep(250);
  }
}

async function register(
  connection: ConnectionLike,
  namespace: string,
  missing: readonly SearchAttributeName[],
): Promise<void> {
  const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD] as const));
  const add = () => connection.operatorService.addSearchAttributes({ namespace, searchAttributes });
  await bounded(connection, add).catch((error: unknown) => {
    if (!isRefused(error)) throw error;
    const problem = `lacks the search attributes ${missing.join(', ')}, and the server does not let this process register them`;
    throw notSetUp(namespace, `${problem} (${grpcError(error)?.words ?? ''})`, missing, error);
  });
}

async function readTypes(connection: ConnectionLike, namespace: string): Promise<Record<string, number>> {
  try {
    const { customAttributes } = await bounded(connection, () =>
      connection.operatorService.listSearchAttributes({ namespace }),
    );
    return customAttributes;
  } catch (error) {
    if (hasGrpcStatus(error, 'NOT_FOUND')) throw noNamespace(namespace, error);
    if (!isRefused(error)) throw error;
    // Temporal Cloud has no operator service; an older operation lists the namespace's attributes there.
    const metadata = { 'temporal-namespace': namespace };
    const list = () =>
      connection.withMetadata(metadata, () => connection.workflowService.getSearchAttributes({}));
    const { keys } = await bounded(connection, list).catch((refusal: unknown) => {
      if (!isRefused(refusal)) throw refusal;
      const problem = `does not show its search attributes (${grpcError(refusal)?.words ?? ''})`;
      throw notSetUp(namespace, problem, SEARCH_ATTRIBUTES, refusal);
    });
    return keys;
  }
}

function bounded<T>(connection: ConnectionLike, call: () => Promise<T>): Promise<T> {
  return connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, call);
}

function isRefused(error: unknown): boolean {
  return hasGrpcStatus(error, 'PERMISSION_DENIED', 'UNAUTHENTICATED', 'UNIMPLEMENTED');
}
