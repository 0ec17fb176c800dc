/** What the SDK does not export: any of its versions may change it. */
import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import { InternalWorkflowStartOptionsSymbol } from '@temporalio/client/lib/internal';
import { decodeFromPayloadsAtIndex } from '@temporalio/common/lib/internal-non-workflow';
import { optionalTsToDate } from '@temporalio/common/lib/time';

/** Times of raw responses are protobuf timestamps, whose conversion is not public. */
export { optionalTsToDate } from '@temporalio/common/lib/time';

type Service = Client['workflowService'];
type TaskQueueType = NonNullable<Parameters<Service['describeTaskQueue']>[0]['taskQueueType']>;

/** Enum values of Temporal's API, whose package is not a dependency of this project. */
const WORKFLOW_TASKS = 1 as unknown as TaskQueueType;
const PENDING_ACTIVITY_STARTED = 2;

/** With them, starts of the same `requestId` make one run; the SDK makes one for each start, and takes none. */
export function startOnceOptions(requestId: string): object {
  return { [InternalWorkflowStartOptionsSymbol]: { requestId } };
}

type Decoding = Parameters<typeof decodeFromPayloadsAtIndex>;

/**
 * The first payload of a raw answer, decoded as the SDK's own client does it: with a context, for codecs that depend on it (a
 * key for each workflow). @param activityId undefined for a payload of the workflow's own
 */
export function decodeFirst(
  { options }: Client,
  payloads: Decoding[2],
  workflowId: string,
  activityId?: string | null,
) {
  const { namespace, loadedDataConverter } = options;
  const context: Decoding[3] =
    activityId === undefined
      ? { type: 'workflow', namespace, workflowId }
      : contextOf({ namespace, activityId: activityId ?? '', workflowExecution: { workflowId } });
  return decodeFromPayloadsAtIndex<unknown>(loadedDataConverter, 0, payloads, context);
}

/**
 * The latest activity of a type that has not ended, with the details of its latest heartbeat; undefined where there is none.
 * The server lists them in any order, and still has one that was given up until its worker hears of it. The SDK counts them.
 */
export async function pendingActivity(
  client: Client,
  { workflowId, raw }: Pick<WorkflowExecutionDescription, 'workflowId' | 'raw'>,
  type: string,
) {
  const pending = (raw.pendingActivities ?? [])
    .filter(({ activityType }) => activityType?.name === type)
    .sort((one, other) => Number(one.activityId) - Number(other.activityId))
    .at(-1);
  if (!pending) return undefined;
  const { heartbeatDetails, activityId = '', state } = pending;
  const details = await decodeFirst(client, heartbeatDetails?.payloads, workflowId, activityId);
  return { ...pending, details, isStarted: Number(state) === PENDING_ACTIVITY_STARTED };
}

interface RunningActivity {
  readonly namespace: string;
  readonly activityId: string;
  readonly workflowExecution?: { readonly workflowId: string } | undefined;
}

export function contextOf({ namespace, workflowExecution, activityId }: RunningActivity) {
  const workflowId = workflowExecution?.workflowId ?? '';
  return { type: 'activity', namespace, workflowId, activityId, isLocal: false } as const;
}

/** Keeps the next attempt of a pending activity from starting. The SDK has no call for it. */
export async function pauseActivity(
  { workflowService, options }: Client,
  execution: { readonly workflowId: string; readonly runId: string },
  id: string,
  reason: string,
): Promise<void> {
  const { namespace, identity } = options;
  await workflowService.pauseActivity({ namespace, execution, id, reason, identity });
}

/** A waiting poller comes back at least once a minute (Temporal's long poll); the server lists one that is gone for five. */
const POLLER_IS_GONE_AFTER_MS = 90_000;

/** The workers that poll a workflow task queue, by identity; the SDK has no call for it. */
export async function workersPolling(client: Client, taskQueue: string): Promise<string[]> {
  const { pollers } = await client.withDeadline(Date.now() + 5_000, () =>
    client.workflowService.describeTaskQueue({
      namespace: client.options.namespace,
      taskQueue: { name: taskQueue },
      taskQueueType: WORKFLOW_TASKS,
    }),
  );
  const goneBefore = Date.now() - POLLER_IS_GONE_AFTER_MS;
  const alive = pollers.filter(({ lastAccessTime }) => Number(optionalTsToDate(lastAccessTime)) > goneBefore);
  return [...new Set(alive.map(({ identity }) => identity ?? 'unnamed'))];
}
