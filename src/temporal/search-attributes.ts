import { setTimeout as sleep } from 'node:timers/promises';
import { SEARCH_ATTRIBUTE_TYPES, type SearchAttributeName, SEARCH_ATTRIBUTES } from '../contract/names';
import type { ConnectionLike } from '@temporalio/client';
import { findGrpcError, hasGrpcStatus } from './grpc-status';
import { namespaceNotFoundError, notSetUpError, SearchAttributesError } from './server-error';

/** Values of `IndexedValueType` in Temporal's API. */
const INDEXED_VALUE_TYPES = { Keyword: 2, KeywordList: 7 } as const;

/** The maximum wait until new attributes are listed. The Temporal server's frontends cache the attributes for some seconds. */
const VISIBILITY_TIMEOUT_MS = 15_000;

const CALL_TIMEOUT_MS = 10_000;

/**
 * Registers the missing search attributes of follow-ups in a namespace. If a workflow sets an attribute that is not registered,
 * its workflow task is retried indefinitely. Any number of processes can call the function at any time.
 *
 * @returns the names of the attributes that were missing before this call
 * @throws SearchAttributesError if an attribute has the wrong type, or if attributes are missing and the credentials may not
 *   register them
 */
export async function ensureSearchAttributes(
  connection: ConnectionLike,
  namespace: string,
): Promise<string[]> {
  const types = await readTypes(connection, namespace);
  const toValueType = (name: SearchAttributeName) => INDEXED_VALUE_TYPES[SEARCH_ATTRIBUTE_TYPES[name]];
  const wrong = SEARCH_ATTRIBUTES.filter((name) => name in types && types[name] !== toValueType(name));
  const needed = wrong.map((name) => `${name} (must be ${SEARCH_ATTRIBUTE_TYPES[name]})`);
  if (wrong.length > 0)
    throw new SearchAttributesError(
      `The namespace ${namespace} has search attributes with the wrong type: ${needed.join(', ')}. ` +
        'Remove or rename them (temporal operator search-attribute remove), or use another namespace.',
    );
  const missing = SEARCH_ATTRIBUTES.filter((name) => !(name in types));
  const names = missing.join(', ');
  if (missing.length === 0) return [];
  const searchAttributes = Object.fromEntries(missing.map((name) => [name, toValueType(name)] as const));
  const add = () => connection.operatorService.addSearchAttributes({ namespace, searchAttributes });
  const problem = `lacks the search attributes ${names}, and the Temporal server does not let this process register them`;
  await withCallTimeout(connection, add).catch(throwAsNotSetUp(namespace, problem, missing));
  const deadline = performance.now() + VISIBILITY_TIMEOUT_MS;
  for (;;) {
    const currentTypes = await readTypes(connection, namespace);
    if (missing.every((name) => name in currentTypes)) return missing;
    // The Temporal server also accepts an addition that has no effect, for example of an existing name, so the loop checks it.
    if (performance.now() > deadline)
      throw notSetUpError(
        namespace,
        `does not list ${names} ${VISIBILITY_TIMEOUT_MS / 1_000} s after they were registered`,
        missing,
      );
    await sleep(250);
  }
}

const LIST_DENIED_ACTION =
  'Give the credentials the permission to list search attributes. If search attributes are missing, register them with the ' +
  'following commands:';

async function readTypes(connection: ConnectionLike, namespace: string): Promise<Record<string, number>> {
  try {
    const list = () => connection.operatorService.listSearchAttributes({ namespace });
    return (await withCallTimeout(connection, list)).customAttributes;
  } catch (error) {
    if (hasGrpcStatus(error, 'NOT_FOUND')) throw namespaceNotFoundError(namespace, error);
    if (!isAccessDenied(error)) throw error;
    // Temporal Cloud has no operator service. An older operation lists the attributes of a namespace there.
    const metadata = { 'temporal-namespace': namespace };
    const list = () =>
      connection.withMetadata(metadata, () => connection.workflowService.getSearchAttributes({}));
    const onDenied = throwAsNotSetUp(
      namespace,
      'does not let this process list its search attributes',
      SEARCH_ATTRIBUTES,
      LIST_DENIED_ACTION,
    );
    return (await withCallTimeout(connection, list).catch(onDenied)).keys;
  }
}

function throwAsNotSetUp(
  namespace: string,
  problem: string,
  names: readonly SearchAttributeName[],
  action?: string,
) {
  return (error: unknown): never => {
    if (!isAccessDenied(error)) throw error;
    throw notSetUpError(namespace, `${problem} (${findGrpcError(error)?.text ?? ''})`, names, error, action);
  };
}

function withCallTimeout<T>(connection: ConnectionLike, call: () => Promise<T>): Promise<T> {
  return connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, call);
}

function isAccessDenied(error: unknown): boolean {
  return hasGrpcStatus(error, 'PERMISSION_DENIED', 'UNAUTHENTICATED', 'UNIMPLEMENTED');
}
