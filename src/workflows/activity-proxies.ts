import {
  ActivityCancellationType,
  CancellationScope,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  TemporalFailure,
} from '@temporalio/workflow';
import type { FollowUpActivities, PendingDetails, WorkerSettings } from '../core/activities';
import { fairnessKey } from '../core/ids';
import type { Polling } from '../core/request';

/** What a worker gets beyond the HTTP time limit to take a task up and to report its end, in milliseconds. */
export const REPORT_MARGIN_MS = 15_000;

/** Local: one event and no round trip. A worker answers at once or is broken; it is asked again with each workflow task. */
export const { workerSettings } = proxyLocalActivities<Pick<FollowUpActivities, 'workerSettings'>>({
  startToCloseTimeout: 5_000,
  summary: 'ask the worker for its queues and time limits',
});

/**
 * Local, because an activity on a queue could wait behind a limit while somebody waits for the end of a cancelled follow-up.
 * Without an answer the counts of a read are lost, and a send is asked for again. One attempt, without a schedule-to-close:
 * the SDK's core never ends a local activity whose next attempt would begin after that (1.24, measured).
 */
const pendingDetailsProxy = proxyLocalActivities<Pick<FollowUpActivities, 'pendingDetails'>>({
  startToCloseTimeout: 5_000,
  retry: { maximumAttempts: 1 },
});

/**
 * What the server knows of a pending activity; null if it can't be known. The failure of a local activity comes as an
 * `ActivityFailure` or as its bare cause, not always the same in a replay (measured, SDK 1.24.0): never tell them apart.
 */
export async function pendingDetails(activity: string): Promise<PendingDetails | null> {
  try {
    return await pendingDetailsProxy.pendingDetails(activity);
  } catch (error) {
    if (isCancellation(error) || !(error instanceof TemporalFailure)) throw error;
    return null;
  }
}

/** An activity that is cancelled by hand and not with the workflow: something must be asked for before. */
export class CancelledByHand<End> {
  /** Undefined while it runs. */
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

/**
 * How long a read may wait in its task queue behind a limit. One that lapses loses its place to those that came later:
 * with a minute, a project whose limit made it wait for two and a half had reads that others overtook again and again.
 */
const LONGEST_QUEUE_WAIT_MS = 10 * 60_000;

/**
 * Reads may be repeated at will, so Temporal's retries cover a worker that dies or is being replaced. Each project gets its
 * share of the queue (`fairnessKey`), and a limit per key is one per project; the rest is inherited from the workflow.
 *
 * - Schedule-to-close is the HTTP time limit and a minute, enough for one worker to die and another one to read; or more,
 *   up to the longest wait in the queue, within the deadline. After it the silence counts as an answer.
 * - Only a read of more than five seconds heartbeats; a worker that died in it is noticed in 15 s.
 * - The retry interval is short and flat: only the loss of a worker is retried. A tenth failure is a bug and is reported.
 */
export function readProxy(
  { readTaskQueue, httpTimeoutMs }: WorkerSettings,
  projectId: string,
  untilDeadlineMs: number,
  summary: string,
) {
  const queueWaitMs = Math.max(60_000, Math.min(untilDeadlineMs, LONGEST_QUEUE_WAIT_MS));
  return proxyActivities<Pick<FollowUpActivities, 'getJob'>>({
    taskQueue: readTaskQueue,
    startToCloseTimeout: httpTimeoutMs + REPORT_MARGIN_MS,
    scheduleToCloseTimeout: httpTimeoutMs + queueWaitMs,
    heartbeatTimeout: 15_000,
    retry: { initialInterval: 1_000, backoffCoefficient: 1, maximumAttempts: 10 },
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    priority: { fairnessKey: fairnessKey(projectId) },
    summary,
  });
}

/** Above a `Retry-After`, which is honoured up to an hour and its jitter. */
const LONGEST_WAIT_MS = 2 * 3_600_000;

/**
 * The activity that polls, in its worker's process or by its own retries.
 *
 * - Schedule-to-close is a backstop: the activity ends by itself at `endsAt`; a read that then waits behind a limit, or
 *   whose worker is gone, ends with it. Start-to-close is the same, as one attempt may poll all the time.
 * - The heartbeat time-out notices a dead worker in 30 s. The SDK sends a heartbeat at most every 0.8 of it, 24 s: what
 *   `status` shows of a poll, and what a dead worker had counted, is at most so old.
 * - The interval comes with each failure (`nextRetryDelay`), which the maximum interval would cap, so that this lies
 *   above every wait that the cadence asks for. Without one, a worker was lost, and another takes over after a second.
 * - TRY_CANCEL: what was counted is asked for before a cancellation, and nobody waits for a read under way.
 */
export function pollProxy(
  { readTaskQueue }: WorkerSettings,
  { projectId, polling }: { readonly projectId: string; readonly polling: Polling },
  timeLimitMs: number,
  summary: string,
) {
  return proxyActivities<Pick<FollowUpActivities, 'pollJob'>>({
    taskQueue: readTaskQueue,
    startToCloseTimeout: timeLimitMs,
    scheduleToCloseTimeout: timeLimitMs,
    heartbeatTimeout: 30_000,
    retry: {
      initialInterval: 1_000,
      backoffCoefficient: 1,
      maximumInterval: Math.max(LONGEST_WAIT_MS, 2 * polling.maximumMs),
    },
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    priority: { fairnessKey: fairnessKey(projectId) },
    summary,
  });
}

/**
 * Questions to the Temporal server, on the queue of workflow tasks, for which no limit of the agent service holds.
 *
 * - No schedule-to-close: one waits for as long as a follow-up runs.
 * - Start-to-close: a look takes milliseconds, or the server is asked again.
 * - The interval comes with each failure; without one, a worker was lost, and another asks after five seconds. It does not
 *   back off: each question is an attempt, so that the interval would be at its maximum after a few of them.
 * - TRY_CANCEL: nobody waits any more.
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

/** The look, the POST, and a margin; the send activity ends both exchanges within their limits by itself. */
export function sendTimeLimitMs({ httpTimeoutMs }: WorkerSettings): number {
  return 2 * httpTimeoutMs + REPORT_MARGIN_MS;
}

/**
 * The send must not happen twice.
 *
 * - The server repeats whatever fails around the activity: a worker without it, a codec, a death. The one proof of a POST is
 *   the heartbeat before it: an attempt that finds none looks and sends, and one that finds it sends nothing and says so.
 * - The interval is flat: a worker that can't do it may take each attempt, and the next one may get another worker.
 * - Start-to-close is over when the attempt's POST is. No heartbeat time-out: it could give up a POST that is under way and
 *   still answered. The one heartbeat of the activity is its permission, and no sign of life.
 * - Schedule-to-start is what is left of the deadline: the server lets a task that no worker has taken up by then lapse. No
 *   schedule-to-close, whose end may hide what was recorded: at the deadline the workflow asks for that, and cancels.
 * - A cancellation waits for a POST under way, whose outcome belongs into the receipt; one that no worker has taken up
 *   ends at once.
 */
export function sendProxy(
  settings: WorkerSettings,
  projectId: string,
  startWithinMs: number,
  summary: string,
) {
  return proxyActivities<Pick<FollowUpActivities, 'sendMessage'>>({
    taskQueue: settings.sendTaskQueue,
    startToCloseTimeout: sendTimeLimitMs(settings),
    scheduleToStartTimeout: startWithinMs,
    retry: { initialInterval: 5_000, backoffCoefficient: 1 },
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    priority: { fairnessKey: fairnessKey(projectId) },
    summary,
  });
}
