/**
 * Requests and responses of the Temporal server for which the SDK has no method. A table in docs/architecture.md lists them. For
 * most of them, a test fails as soon as the SDK has the method. The table marks those without a test.
 */
import { Client, type WorkflowExecutionDescription } from '@temporalio/client';
import type { PayloadCodec } from '@temporalio/common';
import { findGrpcError } from './grpc-status';
import { readProtoField, toDate } from './proto-field';

type Service = Client['workflowService'];
type TaskQueueType = NonNullable<Parameters<Service['describeTaskQueue']>[0]['taskQueueType']>;

/** Enum values of Temporal's API. The package of the API is only a development dependency of this project. */
const WORKFLOW_TASKS = 1 as unknown as TaskQueueType;
const PENDING_ACTIVITY_STARTED = 2;

/**
 * Returns a client with which repeated starts create only one run, because all of its starts have the same request ID of
 * Temporal. The SDK's start options have no request ID, and the SDK draws another one for each start.
 *
 * @param startRequestId Temporal's own request ID of the start call, which is not the `requestId` of a follow-up
 */
export function withStartRequestId(client: Client, startRequestId: string): Client {
  const { connection } = client;
  const { workflowService } = connection;
  const start = (request: Parameters<Service['startWorkflowExecution']>[0]) =>
    workflowService.startWorkflowExecution({ ...request, requestId: startRequestId });
  const replaced = new Map<string | symbol, unknown>([
    ['workflowService', Object.create(workflowService, { startWorkflowExecution: { value: start } })],
    // The plugins of the connection have already changed the client's options.
    ['plugins', []],
  ]);
  const withRequestId = new Proxy(connection, {
    get: (target, name) => {
      const value: unknown = replaced.has(name) ? replaced.get(name) : Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  return withConnection(client, withRequestId);
}

/** Returns a client with the same options, except for the connection. */
export function withConnection({ options }: Client, connection: Client['connection']): Client {
  const { identity, namespace, interceptors, workflow, loadedDataConverter: dataConverter } = options;
  return new Client({ identity, namespace, interceptors, workflow, dataConverter, connection });
}

/**
 * Decodes the first payload of a raw response in the same way as the SDK's client. The codec receives the context, because each
 * workflow may have its own key.
 *
 * @param activityId undefined for a payload of the workflow itself
 * @returns undefined if the list has no payload
 */
export async function decodeFirstPayload(
  { options }: Client,
  payloads: Parameters<PayloadCodec['decode']>[0] | null | undefined,
  workflowId: string,
  activityId?: string | null,
): Promise<unknown> {
  if (!payloads?.length) return undefined;
  const { namespace, loadedDataConverter } = options;
  const { payloadCodecs, payloadConverter } = loadedDataConverter;
  const context =
    activityId === undefined
      ? ({ type: 'workflow', namespace, workflowId } as const)
      : toSerializationContext({
          namespace,
          activityId: activityId ?? '',
          workflowExecution: { workflowId },
        });
  let decoded = payloads;
  for (const codec of payloadCodecs.toReversed()) decoded = await codec.decode(decoded, context);
  const [first] = decoded;
  return first && payloadConverter.fromPayload(first, context);
}

type PendingActivityInfo = NonNullable<WorkflowExecutionDescription['raw']['pendingActivities']>[number];

/** A pending activity with the decoded details of its latest heartbeat. */
export type PendingActivity = PendingActivityInfo & {
  readonly details: unknown;
  readonly isStarted: boolean;
};

/**
 * Returns the latest pending activity of a type, with the details of its latest heartbeat. Returns undefined if no activity of
 * the type is pending.
 *
 * The Temporal server lists activities in any order, and lists an abandoned activity until its worker receives the cancellation.
 * The latest activity has the highest ID, because activity IDs are consecutive numbers.
 */
export async function findPendingActivity(
  client: Client,
  { workflowId, raw }: Pick<WorkflowExecutionDescription, 'workflowId' | 'raw'>,
  type: string,
): Promise<PendingActivity | undefined> {
  const pending = (raw.pendingActivities ?? [])
    .filter(({ activityType }) => activityType?.name === type)
    .sort((one, other) => Number(one.activityId) - Number(other.activityId))
    .at(-1);
  if (!pending) return undefined;
  const { heartbeatDetails, activityId = '', state } = pending;
  const details = await decodeFirstPayload(client, heartbeatDetails?.payloads, workflowId, activityId);
  return { ...pending, details, isStarted: Number(state) === PENDING_ACTIVITY_STARTED };
}

/** Describes a run, and returns its pending activity as {@link findPendingActivity} does. */
export async function describePendingActivity(
  client: Client,
  { workflowId, runId }: { readonly workflowId: string; readonly runId: string },
  type: string,
): Promise<PendingActivity | undefined> {
  const description = await client.workflow.getHandle(workflowId, runId).describe();
  return findPendingActivity(client, description, type);
}

interface RunningActivity {
  readonly namespace: string;
  readonly activityId: string;
  readonly workflowExecution?: { readonly workflowId: string } | undefined;
}

/** Returns the context of an activity's payloads for the data converter. */
export function toSerializationContext({ namespace, workflowExecution, activityId }: RunningActivity) {
  const workflowId = workflowExecution?.workflowId ?? '';
  return { type: 'activity', namespace, workflowId, activityId, isLocal: false } as const;
}

/** The reason with which a follow-up pauses its own send, before it reads whether the send has sent anything. */
export const STOP_SEND_REASON = 'the follow-up stops its send';

/** Pauses a pending activity of a workflow, so that its next attempt does not start. */
export async function pauseActivity(
  { workflowService, options }: Client,
  execution: { readonly workflowId: string; readonly runId: string },
  id: string,
  reason: string,
): Promise<void> {
  const { namespace, identity } = options;
  await workflowService.pauseActivity({ namespace, execution, id, reason, identity });
}

/**
 * A poller without a poll for this time counts as stopped. A running poller polls at least once a minute, but the Temporal server
 * lists a poller for five minutes after its last poll.
 */
const POLLER_EXPIRY_MS = 90_000;

/**
 * Returns the identities of the workers that poll a workflow task queue.
 *
 * @returns null if the Temporal server rejects the call; no feature may depend on this call, because a gateway may reject it
 */
export async function listPollingWorkers(client: Client, taskQueue: string): Promise<string[] | null> {
  const request = {
    namespace: client.options.namespace,
    taskQueue: { name: taskQueue },
    taskQueueType: WORKFLOW_TASKS,
  };
  const describe = () => client.workflowService.describeTaskQueue(request);
  const response = await client.withDeadline(Date.now() + 5_000, describe).catch((error: unknown) => {
    if (findGrpcError(error) === undefined) throw error;
    return null;
  });
  if (response === null) return null;
  const { pollers } = response;
  const expiredBefore = Date.now() - POLLER_EXPIRY_MS;
  const activePollers = pollers.filter(
    ({ lastAccessTime }) => Number(toDate(lastAccessTime)) > expiredBefore,
  );
  return [...new Set(activePollers.map(({ identity }) => readProtoField(identity) ?? 'unnamed'))];
}
