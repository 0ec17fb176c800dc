import {
  ActivityCancellationType,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  TemporalFailure,
} from '@temporalio/workflow';
import type {
  FollowUpActivities,
  JobAddress,
  JobLockHolder,
  PollJobInput,
  SendRecord,
  WorkerSettings,
} from '../contract/activities';
import { fairnessKey } from '../contract/ids';

/** The time beyond the HTTP timeout in which a worker starts a task and reports its end. */
export const REPORT_MARGIN_MS = 15_000;

/** A local activity costs one event and no request. */
export const { workerSettings } = proxyLocalActivities<FollowUpActivities>({
  startToCloseTimeout: 5_000,
  summary: 'get the task queues and timeouts of the worker',
});

/**
 * Requests to the Temporal server while a follow-up ends or is interrupted. They are local, because on a task queue they could wait
 * behind a rate limit. Each has one attempt and no schedule-to-close timeout: the SDK's core never ends a local activity whose next
 * attempt would start after that timeout (SDK 1.24).
 */
const localActivities = proxyLocalActivities<FollowUpActivities>({
  startToCloseTimeout: 5_000,
  retry: { maximumAttempts: 1 },
});

/** Returns how many reads the pending `pollJob` has made; 0 if the Temporal server does not respond. */
export function countPollReads(): Promise<number> {
  return withFallback(localActivities.countPollReads(), 0);
}

/** Keeps the pending send from starting, and returns what it has recorded. */
export function stopSend(): Promise<SendRecord> {
  return withFallback(localActivities.stopSend(), { kind: 'unknown' });
}

/** Releases the job lock, if the Temporal server responds. */
export function releaseJobLock(
  job: JobAddress,
  holder: JobLockHolder,
  lockRunId: string | null,
): Promise<void> {
  return withFallback(localActivities.releaseJobLock(job, holder, lockRunId), undefined);
}

/**
 * The failure of a local activity is an `ActivityFailure` or its bare cause, and a replay may have the other one (SDK 1.24): the two
 * must have the same effect.
 */
async function withFallback<T>(request: Promise<T>, fallback: T): Promise<T> {
  try {
    return await request;
  } catch (error) {
    if (isCancellation(error) || !(error instanceof TemporalFailure)) throw error;
    return fallback;
  }
}

/** A retry for which no failure brings an interval: the worker was lost. */
const LOST_WORKER_RETRY_MS = 1_000;

/** A read that waits behind a rate limit loses its place when its time is over: with a short time, again and again. */
const MAX_QUEUE_WAIT_MS = 10 * 60_000;

function queueWaitMs(untilDeadlineMs: number): number {
  return Math.max(60_000, Math.min(untilDeadlineMs, MAX_QUEUE_WAIT_MS));
}

/**
 * Makes one read. Only the loss of a worker is retried, which the heartbeat timeout shows within 15 s, although a read may take
 * minutes. Ten attempts are enough for ten lost workers; an eleventh would be a bug.
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
 * Reads until the job changes. Each failed attempt brings the interval to the next one, which may be half longer than the maximum
 * because of jitter. A lost worker costs one attempt of the length of a read. The activity ends with the read at `input.until`, which may
 * wait in the queue as long as a single read.
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
 * Activities that only ask the Temporal server, on the task queue of workflows, which has no rate limit of the agent service. Each
 * failure brings the interval to the next attempt, because a backoff would soon be at its maximum.
 *
 * @param taskQueue @default the task queue of the calling workflow
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
