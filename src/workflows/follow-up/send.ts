import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  isCancellation,
  proxyActivities,
  TimeoutFailure,
} from '@temporalio/workflow';
import {
  type FollowUpActivities,
  isSendCheckpoint,
  isSendResult,
  noReport,
  type SendCheckpoint,
  type SendResult,
} from '../../core/activities';
import { fairnessKey } from '../../core/ids';
import { NO_CHANGE } from '../../core/names';
import { singleLine } from '../../core/text';
import { CancelledByHand, pendingDetails, REPORT_MARGIN_MS } from '../activity-proxies';
import type { FollowUpContext } from './context';
import { earlierBaseline } from './state';

/**
 * Looks at the job and makes at most one POST, by one activity. The outcome of a POST under way is always awaited.
 *
 * @param permittedRunId the one run that may make the POST
 * @throws CancelledFailure when the workflow was cancelled before
 */
export async function send(
  context: FollowUpContext,
  prompt: string,
  permittedRunId: string,
  insist: true | undefined,
): Promise<SendResult> {
  const own = CancellationScope.current();
  if (own.consideredCancelled) return own.cancelRequested;
  const { state } = context;
  const { projectId, jobId, whenActive } = state.plan;
  const earlier = earlierBaseline(state, Date.now());
  const input = { projectId, jobId, prompt, whenActive, permittedRunId, insist, earlierBaseline: earlier };
  const activity: Send = new CancelledByHand(() =>
    sendProxy(context)
      .sendMessage(input)
      .then((value: unknown) => (isSendResult(value) ? value : unreported(FOREIGN_END)), endWithoutReport),
  );
  try {
    await endOrDeadline(context, activity, timeLimitMs(context), () => askAfter(context));
  } catch (error) {
    if (!isCancellation(error)) throw error;
  }
  // Once: a cancellation while it is given up must not forget what was recorded.
  const end =
    activity.end === undefined
      ? await CancellationScope.nonCancellable(() => giveUp(context, activity))
      : activity.end;
  const message = state.lastAnswer ?? 'no worker has taken the send up; does one poll its task queue?';
  return end === null || end === 'untold' ? { kind: 'not-permitted', message } : end;
}

/** Its end is null if nothing was sent, and `untold` if it was cancelled: what it had recorded does not come with that. */
type Send = CancelledByHand<SendResult | null | 'untold'>;

/** Of one attempt: a look, a POST, and what lies around them. */
function timeLimitMs({ settings }: FollowUpContext): number {
  return 2 * settings.httpTimeoutMs + REPORT_MARGIN_MS;
}

/**
 * The heartbeat before the POST is its one proof. The server repeats what fails around it, at a flat interval: the next attempt
 * may get another worker. A heartbeat time-out could give up a POST that is still answered, and the end by a schedule-to-close
 * hide what was recorded: at the deadline the workflow asks for that, and cancels.
 */
function sendProxy(context: FollowUpContext) {
  const { state, settings } = context;
  const { sends } = state.delivery;
  return proxyActivities<FollowUpActivities>({
    taskQueue: settings.sendTaskQueue,
    startToCloseTimeout: timeLimitMs(context),
    scheduleToStartTimeout: Math.max(1, state.deadlineAt - Date.now()),
    retry: { initialInterval: 5_000, backoffCoefficient: 1 },
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    priority: { fairnessKey: fairnessKey(state.plan.projectId) },
    summary: `look at the job, send the message${sends === 0 ? '' : ` (POST ${sends + 1})`}`,
  });
}

/**
 * Waits for the end of an activity, or for the deadline. One that takes longer than an attempt is asked after, so that people
 * read why; ever more rarely, as each question costs events.
 */
export async function endOrDeadline(
  context: FollowUpContext,
  activity: CancelledByHand<unknown>,
  attemptMs: number,
  ask: () => Promise<unknown>,
): Promise<void> {
  const isOver = () => activity.end !== undefined;
  for (let waitMs = attemptMs; ; waitMs *= 2) {
    const untilDeadlineMs = context.state.deadlineAt - Date.now();
    if (untilDeadlineMs <= 0) return;
    const summary = 'until it is asked why this takes so long';
    if (await condition(isOver, Math.min(waitMs, untilDeadlineMs), { summary })) return;
    await ask();
    context.show();
  }
}

/**
 * What the server knows of the pending send, in words for people.
 *
 * @returns what it has recorded before a POST; null for nothing, undefined where the server does not answer
 */
async function askAfter({ state, settings }: FollowUpContext): Promise<SendCheckpoint | null | undefined> {
  const pending = await pendingDetails('sendMessage');
  if (pending === null) return undefined;
  const { details, started, failure } = pending;
  const queue = `the task queue ${settings.sendTaskQueue}`;
  if (started) state.lastAnswer = `a worker of ${queue} has taken the send up`;
  else if (failure !== null) state.lastAnswer = `the send fails on ${queue}, and is tried again: ${failure}`;
  else state.lastAnswer = `no worker has taken the send up from ${queue}, or a limit holds it up`;
  return checkpointOf(details);
}

/** Cancels a send that has not reported; a POST under way is waited for. @returns null if nothing was sent */
async function giveUp(context: FollowUpContext, activity: Send): Promise<SendResult | null> {
  const before = activity.end === undefined ? await askAfter(context) : null;
  activity.cancel();
  // The server may never give up a send that is paused: its time limit stands still.
  await condition(() => activity.end !== undefined, timeLimitMs(context));
  const { end } = activity;
  if (end && end !== 'untold') return end;
  // An attempt may have begun while the cancellation was on its way.
  const checkpoint = before ?? (end === undefined ? await askAfter(context) : before);
  // Where the server has not answered, a POST may have been made, unless a time-out tells that nothing was recorded.
  if (checkpoint === null || (checkpoint === undefined && end === null)) return null;
  return unreported('the send was given up before it reported', checkpoint);
}

/** The server repeats what fails: the send is cancelled, or nobody has taken it up in time, or somebody has ended it. */
function endWithoutReport(error: unknown): SendResult | null | 'untold' {
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  if (cause instanceof CancelledFailure) return 'untold';
  // It was paused, and may have no other attempt.
  if (cause instanceof ApplicationFailure && cause.type === NO_CHANGE)
    return { kind: 'not-permitted', message: singleLine(cause.message, 300) };
  if (!(cause instanceof TimeoutFailure)) return unreported(FOREIGN_END);
  const checkpoint = checkpointOf(cause.lastHeartbeatDetails);
  return checkpoint && unreported('the worker that was to send the message did not report', checkpoint);
}

/** What was recorded of it is lost. */
const FOREIGN_END = 'somebody else has ended the send';

/** What a send has recorded. A foreign client can record anything, and a POST may have been made all the same. */
function checkpointOf(details: unknown): SendCheckpoint | null {
  if (details === null || details === undefined) return null;
  return isSendCheckpoint(details) ? details : unknownCheckpoint();
}

function unknownCheckpoint(): SendCheckpoint {
  return { baseline: null, sentAt: Date.now() };
}

function unreported(why: string, checkpoint = unknownCheckpoint()): SendResult {
  return { kind: 'posted', ...checkpoint, outcome: noReport(why) };
}
