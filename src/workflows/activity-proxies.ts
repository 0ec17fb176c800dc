import { ActivityCancellationType, proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { FollowUpActivities, WorkerSettings } from '../contract/activities';

/** What a worker gets beyond the HTTP time limit to take a task up and to report its end, in milliseconds. */
const REPORT_MARGIN_MS = 15_000;

/**
 * The worker's settings: no I/O, so that a local activity does, which costs one event and no round trip. A worker
 * answers at once or is broken; it is asked again with each workflow task.
 */
export const settingsProxy = proxyLocalActivities<Pick<FollowUpActivities, 'workerSettings'>>({
  startToCloseTimeout: 5_000,
});

/**
 * Reads may be repeated at will, so that Temporal's retries cover a worker that dies or is being replaced.
 *
 * - Schedule-to-close is the HTTP time limit and a minute: enough for one worker to die and another one to read.
 *   After it the silence counts as an answer, and the watch goes on by its cadence.
 * - Only a read of more than five seconds heartbeats; a worker that died in it is noticed in 15 s.
 * - The retry interval is short and flat: what is retried is the loss of a worker, never an answer of the service,
 *   which the activity returns as a value.
 */
export function readProxy({ readTaskQueue, httpTimeoutMs }: WorkerSettings, summary: string) {
  return proxyActivities<Pick<FollowUpActivities, 'getJob' | 'isSendUnderWay'>>({
    taskQueue: readTaskQueue,
    startToCloseTimeout: httpTimeoutMs + REPORT_MARGIN_MS,
    scheduleToCloseTimeout: httpTimeoutMs + 60_000,
    heartbeatTimeout: 15_000,
    retry: { initialInterval: 1_000, backoffCoefficient: 1 },
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    summary,
  });
}

/**
 * The send must not happen twice.
 *
 * - One attempt: whatever ends it without an answer leaves the delivery unknown, and only the workflow may decide
 *   what follows. An attempt limit alone is no guarantee: a worker that dies in it shows as start-to-close.
 * - No schedule-to-close and no heartbeat timeout: either could give up a POST that is under way and still answered.
 * - Start-to-close is the HTTP time limit and a margin; the activity ends its exchange within the limit by itself.
 * - Schedule-to-start is what is left of the deadline: the server lets a task that no worker has taken up by then lapse,
 *   which proves that nothing was sent.
 * - A cancellation waits for a POST under way, whose outcome belongs into the receipt; one that no worker has taken up
 *   ends at once.
 */
export function sendProxy(
  { sendTaskQueue, httpTimeoutMs }: WorkerSettings,
  startWithinMs: number,
  summary: string,
) {
  return proxyActivities<Pick<FollowUpActivities, 'sendMessage'>>({
    taskQueue: sendTaskQueue,
    startToCloseTimeout: httpTimeoutMs + REPORT_MARGIN_MS,
    scheduleToStartTimeout: startWithinMs,
    retry: { maximumAttempts: 1 },
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    summary,
  });
}
