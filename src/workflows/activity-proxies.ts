import {
  ActivityCancellationType,
  CancellationScope,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  TemporalFailure,
} from '@temporalio/workflow';
import type {
  FollowUpActivities,
  PendingDetails,
  PollJobInput,
  ReadInput,
  WorkerSettings,
} from '../core/activities';
import { fairnessKey } from '../core/ids';

/** Beyond the HTTP time limit, to take a task up and to report its end. */
export const REPORT_MARGIN_MS = 15_000;

/** Local: one event and no round trip. */
export const { workerSettings } = proxyLocalActivities<FollowUpActivities>({
  startToCloseTimeout: 5_000,
  summary: 'ask the worker for its queues and time limits',
});

/**
 * Local: on a queue it could wait behind a limit while somebody waits for the end of a cancelled follow-up. One attempt, without
 * a schedule-to-close: the SDK's core never ends a local activity whose next attempt would begin after that (1.24, measured).
 */
const { pendingDetails: askForDetails } = proxyLocalActivities<FollowUpActivities>({
  startToCloseTimeout: 5_000,
  retry: { maximumAttempts: 1 },
});

/**
 * What the server knows of a pending activity; null if it can't be known. A local activity's failure is an `ActivityFailure` or
 * its bare cause, and in a replay perhaps the other (measured, SDK 1.24.0): never tell them apart.
 */
export async function pendingDetails(activity: string): Promise<PendingDetails | null> {
  try {
    return await askForDetails(activity);
  } catch (error) {
    if (isCancellation(error) || !(error instanceof TemporalFailure)) throw error;
    return null;
  }
}

/** An activity that is cancelled by hand and not with the workflow: something must be asked for before. */
export class CancelledByHand<End> {
  end: End | undefined;
  /** Fulfilled at its end; rejected where `activity` throws. */
  readonly done: Promise<void>;
  private readonly scope = new CancellationScope({
    cancellable: true,
    parent: new CancellationScope({ cancellable: false }),
  });

  constructor(activity: () => Promise<End>) {
    this.done = this.scope.run(async () => {
      this.end = await activity();
    });
  }

  cancel(): void {
    this.scope.cancel();
  }
}

/** A read behind a limit that lapses loses its place to those that came later: again and again, if this is short. */
const LONGEST_QUEUE_WAIT_MS = 10 * 60_000;

/** One read. Only the loss of a worker is retried, which is noticed in 15 s (a read may take minutes); a tenth failure is a bug. */
export function getJob(
  { readTaskQueue, httpTimeoutMs }: WorkerSettings,
  input: ReadInput,
  untilDeadlineMs: number,
  summary: string,
) {
  const queueWaitMs = Math.max(60_000, Math.min(untilDeadlineMs, LONGEST_QUEUE_WAIT_MS));
  return proxyActivities<FollowUpActivities>({
    taskQueue: readTaskQueue,
    startToCloseTimeout: httpTimeoutMs + REPORT_MARGIN_MS,
    scheduleToCloseTimeout: httpTimeoutMs + queueWaitMs,
    heartbeatTimeout: 15_000,
    retry: { initialInterval: 1_000, backoffCoefficient: 1, maximumAttempts: 10 },
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    priority: { fairnessKey: fairnessKey(input.projectId) },
    summary,
  }).getJob(input);
}

/** Above a `Retry-After`, which is honoured up to an hour and its jitter. */
const LONGEST_WAIT_MS = 2 * 3_600_000;

/**
 * The activity that polls, in its worker's process or by its own retries, whose interval comes with each failure. It ends by
 * itself; the time limits are a backstop. The SDK sends its heartbeats every 24 s at most (0.8 of their time-out).
 */
export function pollJob(
  { readTaskQueue }: WorkerSettings,
  input: PollJobInput,
  timeLimitMs: number,
  summary: string,
) {
  return proxyActivities<FollowUpActivities>({
    taskQueue: readTaskQueue,
    startToCloseTimeout: timeLimitMs,
    scheduleToCloseTimeout: timeLimitMs,
    heartbeatTimeout: 30_000,
    retry: {
      initialInterval: 1_000,
      backoffCoefficient: 1,
      maximumInterval: Math.max(LONGEST_WAIT_MS, 2 * input.polling.maximumMs),
    },
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    priority: { fairnessKey: fairnessKey(input.projectId) },
    summary,
  }).pollJob(input);
}

/**
 * Questions to the Temporal server, on the queue of workflow tasks, for which no limit of the agent service holds. The interval
 * comes with each failure; a back-off would soon be at its maximum.
 *
 * @param taskQueue @default that of the calling workflow
 */
export function questionProxy(summary: string, taskQueue?: string) {
  return proxyActivities<Pick<FollowUpActivities, 'followUpResult' | 'takeTurn' | 'awaitEnd'>>({
    ...(taskQueue !== undefined && { taskQueue }),
    startToCloseTimeout: 60_000,
    retry: { initialInterval: 5_000, backoffCoefficient: 1, maximumInterval: 5 * 60_000 },
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    summary,
  });
}
