import {
  ActivityCancellationType,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  TemporalFailure,
} from '@temporalio/workflow';
import {
  type FollowUpActivities,
  type JobAddress,
  type PollJobInput,
  type WorkerSettings,
} from '../contract/activities';
import { type JobLockHolder, REPORT_MARGIN_MS, type SendRecord } from '../contract/send-result';
import { fairnessKey } from '../contract/ids';

/** Gets the worker's settings with a local activity, because a local activity costs one event and no request. */
export const { workerSettings } = proxyLocalActivities<FollowUpActivities>({
  startToCloseTimeout: 5_000,
  summary: 'get the task queues and timeouts of the worker',
});

/**
 * Requests to the Temporal server while a follow-up ends or is interrupted. The activities are local, because on a task queue they
 * could wait behind a rate limit. Each activity has one attempt. The activities have no schedule-to-close timeout, because the core
 * of SDK 1.24 never ends a local activity whose next attempt would start after this timeout.
 */
const localActivities = proxyLocalActivities<FollowUpActivities>({
  startToCloseTimeout: 5_000,
  retry: { maximumAttempts: 1 },
});

/** Returns how many reads the pending `pollJob` has made; 0 if the Temporal server does not respond. */
export function countPollReads(): Promise<number> {
  return withFallback(localActivities.countPollReads(), 0);
}

/**
 * Unless an attempt is running, prevents a further attempt of the pending send. Returns the record of the send; `unknown` if
 * the Temporal server does not respond.
 */
export function stopSend(): Promise<SendRecord> {
  return withFallback(localActivities.stopSend(), { kind: 'unknown' });
}

/** Releases the job lock. If the Temporal server does not respond, the next follow-up to the job terminates the lock. */
export function releaseJobLock(
  job: JobAddress,
  holder: JobLockHolder,
  lockRunId: string | null,
): Promise<void> {
  return withFallback(localActivities.releaseJobLock(job, holder, lockRunId), undefined);
}

/**
 * Returns the fallback if a local activity fails. In SDK 1.24, the failure is an `ActivityFailure` or only its cause, and a replay
 * may have the other of the two. Both must therefore have the same effect.
 */
async function withFallback<T>(request: Promise<T>, fallback: T): Promise<T> {
  try {
    return await request;
  } catch (error) {
    if (isCancellation(error) || !(error instanceof TemporalFailure)) throw error;
    return fallback;
  }
}

/** The retry interval after a lost worker, because no failure then sets the interval. */
const LOST_WORKER_RETRY_MS = 1_000;

/**
 * The maximum time for which a read waits in its task queue. A read that times out behind a rate limit loses its position in the
 * queue, so a short time could delay a read indefinitely.
 */
const MAX_QUEUE_WAIT_MS = 10 * 60_000;

function queueWaitMs(untilDeadlineMs: number): number {
  return Math.max(60_000, Math.min(untilDeadlineMs, MAX_QUEUE_WAIT_MS));
}

/**
 * Makes one read. Only the loss of a worker causes a retry. The heartbeat timeout detects this loss within 15 s, although a read
 * may take minutes. Ten attempts allow for nine lost workers, and more lost workers would be a bug.
 */
export function getJob(
  { readTaskQueue, httpTimeoutMs }: WorkerSettings,
  address: JobAddress,
  untilDeadlineMs: number,
  summary: string,
) {
  return proxyActivities<FollowUpActivities>({
    taskQueue: readTaskQueue,
    startToCloseTimeout: httpTimeoutMs + REPORT_MARGIN_MS,
    scheduleToCloseTimeout: httpTimeoutMs + queueWaitMs(untilDeadlineMs),
    heartbeatTimeout: 15_000,
    retry: { initialInterval: LOST_WORKER_RETRY_MS, backoffCoefficient: 1, maximumAttempts: 10 },
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    priority: { fairnessKey: fairnessKey(address.projectId) },
    summary,
  }).getJob(address);
}

/**
 * Reads the job until it changes. Each failed attempt sets the interval to the next attempt, which may be 1.5 times the maximum
 * because of jitter. A lost worker costs the duration of one attempt. The activity ends with the first read at `input.decidesAt` or
 * later, which may wait in its task queue as long as a single read.
 */
export function pollJob(
  { readTaskQueue, httpTimeoutMs }: WorkerSettings,
  input: PollJobInput,
  deadlineAt: number,
  summary: string,
) {
  return proxyActivities<FollowUpActivities>({
    taskQueue: readTaskQueue,
    startToCloseTimeout: httpTimeoutMs + REPORT_MARGIN_MS,
    scheduleToCloseTimeout:
      Math.max(0, input.decidesAt - Date.now()) + httpTimeoutMs + queueWaitMs(deadlineAt - input.decidesAt),
    retry: {
      initialInterval: LOST_WORKER_RETRY_MS,
      backoffCoefficient: 1,
      // The Temporal server accepts no maximum below the initial interval.
      maximumInterval: Math.max(LOST_WORKER_RETRY_MS, 2 * input.polling.maximumMs),
    },
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    priority: { fairnessKey: fairnessKey(input.projectId) },
    summary,
  }).pollJob(input);
}

/**
 * Returns activities that send requests only to the Temporal server. The activities are on the workflows' task queue, to which the
 * rate limits for the agent service do not apply. Each failure sets the interval to the next attempt, because a backoff would soon
 * be at its maximum.
 *
 * @param taskQueue the task queue of a worker of this project @default the task queue of the calling workflow
 */
export function serverCallProxy(summary: string, taskQueue?: string) {
  return proxyActivities<Pick<FollowUpActivities, 'followUpResult' | 'waitForJobLock'>>({
    ...(taskQueue !== undefined && { taskQueue }),
    startToCloseTimeout: 60_000,
    retry: { initialInterval: 5_000, backoffCoefficient: 1, maximumInterval: 5 * 60_000 },
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    summary,
  });
}
