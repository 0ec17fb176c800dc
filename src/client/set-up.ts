import { Client, type ConnectionLike } from '@temporalio/client';
import { listPollingWorkers } from '../temporal/raw-requests';
import { ensureSearchAttributes as registerSearchAttributes } from '../temporal/search-attributes';
import { checkServerVersion } from '../temporal/server-version';
import { type CallOptions, CallRunner } from './call-runner';
import { invalidFieldError } from './errors';
import type { FollowUpClient } from './follow-up-client';
import { checkName } from './options';

/** Registers the missing search attributes, and returns facts about the Temporal server. The CLI command `setup` prints them. */
export function setUpNamespace(
  { client: sdkClient, taskQueue }: Pick<FollowUpClient, 'client' | 'taskQueue'>,
  options: CallOptions = {},
) {
  return new CallRunner(sdkClient, taskQueue).run(options, async (client) => {
    const { namespace } = client.options;
    const serverVersion = await checkServerVersion(client.connection);
    const registered = await registerSearchAttributes(client.connection, namespace);
    const workers = await listPollingWorkers(client, taskQueue);
    return { serverVersion, namespace, registered, taskQueue, workers };
  });
}

/**
 * Registers the missing search attributes of follow-ups in a namespace. Any number of processes can call the function at any time.
 *
 * @returns the names of the attributes that were missing before this call
 * @throws InvalidRequestError if an argument is invalid
 * @throws SearchAttributesError if an attribute has the wrong type, or if attributes are missing and the credentials may not
 *   register them
 * @throws FollowUpError for every other error, for example TemporalUnreachableError
 */
export async function ensureSearchAttributes(
  connection: ConnectionLike,
  namespace: string,
): Promise<string[]> {
  if (!(connection as Partial<ConnectionLike> | null)?.workflowService)
    throw invalidFieldError('connection', 'must be the connection of a Client of @temporalio/client');
  checkName('namespace', namespace);
  const calls = new CallRunner(new Client({ connection, namespace }), '');
  return calls.run({}, (client) => registerSearchAttributes(client.connection, namespace));
}
