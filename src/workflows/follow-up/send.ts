import {
  ActivityFailure,
  CancellationScope,
  CancelledFailure,
  isCancellation,
  sleep,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { SendCheckpoint, SendResult } from '../../core/activities';
import { isSendCheckpoint, isSendResult } from '../../core/wire-checks';
import { pollInterval } from '../../core/cadence';
import type { JobState } from '../../core/job';
import { singleLine } from '../../core/text';
import { pendingDetailsProxy, sendProxy } from '../activity-proxies';
import type { FollowUpContext } from './context';
import { readAndRecord } from './poll';
import { type FollowUpState, newWatch, type Watch } from './state';

/**
 * A POST that is unanswered for so long is read beside: a turn may begin and end before the time-out, and to have seen
 * it is the only proof of delivery when the worker has died.
 */
const READ_BESIDE_AFTER_MS = 5_000;

/** What this run has seen of the pending send's checkpoint. */
interface SeenCheckpoint {
  checkpoint: SendCheckpoint | null;
}

/** The job before a POST of unknown delivery; null where there was none, or where it is not known. */
export function earlierBaseline({ delivery, baseline }: FollowUpState): JobState | null {
  return delivery.verdict === 'unknown' ? baseline : null;
}

/**
 * Looks at the job and makes at most one POST, by one activity, and reads the job beside a POST that stays unanswered.
 * If the POST may have been made, `state.watch` begins with it; else it is as before.
 *
 * A POST under way is never abandoned, by cancellation, deadline or shutdown: its outcome is awaited first.
 *
 * @param permittedRunId the one run that may make the POST
 * @throws ActivityFailure when the workflow is cancelled before a worker has taken the send up: nothing was sent
 */
export async function send(
  context: FollowUpContext,
  prompt: string,
  permittedRunId: string,
): Promise<SendResult> {
  const { state } = context;
  const earlier = state.watch;
  context.sending = true;
  context.enterBriefly('sending');
  const besides = new CancellationScope();
  const seen: SeenCheckpoint = { checkpoint: null };
  const reading = besides.run(() => readBeside(context, earlier, seen));
  let result: SendResult | undefined;
  try {
    result = await context.look(() => lookAndPost(context, prompt, permittedRunId, seen));
  } finally {
    context.sending = false;
    besides.cancel();
    const beside = await reading;
    state.watch = beginWatch(result, beside, earlier);
  }
  noteResult(context, result);
  return result;
}

/** The watch after a send: the one that has begun beside the POST, a new one, or the earlier one if nothing was sent. */
function beginWatch(
  result: SendResult | undefined,
  beside: Watch | null,
  earlier: Watch | null,
): Watch | null {
  if (result?.kind === 'reset') return earlier ?? newWatch(result.baseline, Date.now());
  if (result?.kind !== 'posted' || result.outcome.verdict === 'not-sent') return earlier;
  return beside ?? newWatch(result.baseline, Math.min(result.sentAt, Date.now()), earlier);
}

function noteResult(context: FollowUpContext, result: SendResult): void {
  const { state } = context;
  switch (result.kind) {
    case 'unread':
      context.note(result.trouble);
      return;
    case 'held-back':
      context.note({ kind: 'job', job: result.job });
      return;
    case 'not-permitted':
      state.lastAnswer = result.message;
      return;
    case 'reset':
      state.job = result.baseline ?? state.job;
      state.lastAnswer = result.message;
      return;
    case 'posted': {
      const { outcome, baseline } = result;
      // A read beside the POST has shown the job later than the baseline does.
      if (!state.watch?.last) state.job = baseline ?? state.job;
      if (outcome.verdict !== 'accepted') state.lastAnswer = outcome.message;
    }
  }
}

async function lookAndPost(
  { state, settings }: FollowUpContext,
  prompt: string,
  permittedRunId: string,
  seen: SeenCheckpoint,
): Promise<SendResult> {
  const { plan, delivery, deadlineAt } = state;
  const { projectId, jobId, whenActive } = plan;
  const summary =
    delivery.sends === 0
      ? 'look at the job, send the message'
      : `look at the job, send the message (POST ${delivery.sends + 1})`;
  const proxy = sendProxy(settings, projectId, Math.max(1, deadlineAt - Date.now()), summary);
  const input = { projectId, jobId, prompt, whenActive, permittedRunId, deadlineAt };
  try {
    const result: unknown = await proxy.sendMessage({ ...input, earlierBaseline: earlierBaseline(state) });
    return isSendResult(result) ? result : unknownResult('the send was completed by somebody else', seen);
  } catch (error) {
    return resultOfLostSend(error, seen);
  }
}

/** What it proves that the send activity has not reported; it never throws by itself. */
function resultOfLostSend(error: unknown, seen: SeenCheckpoint): SendResult {
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  // The server cancels an activity only while no worker has taken it up; a POST under way is waited for. If an operator has
  // raised the attempts, an earlier attempt may have sent the message.
  if (cause instanceof CancelledFailure) {
    if (seen.checkpoint === null) throw error;
    return unknownResult('the send was cancelled before its next attempt', seen);
  }
  if (cause instanceof TimeoutFailure) {
    // An operator can erase what the server has recorded, and not what this run has seen of it.
    const checkpoint = checkpointOf(cause.lastHeartbeatDetails) ?? seen.checkpoint;
    if (checkpoint)
      return unknownResult('the worker that was to send the message did not report', { checkpoint });
    // A POST begins only after the server has recorded the checkpoint, which it refuses once it has given the activity up.
    const message =
      cause.timeoutType === 'SCHEDULE_TO_START'
        ? 'no worker took the send up; does one poll the task queue of the sends?'
        : 'the worker that took the send up did not begin it';
    return { kind: 'not-permitted', message };
  }
  // The activity itself returns in every case: what fails is around it, before or after a POST.
  return unknownResult(`the send ended without an answer (${cause?.message ?? error.message})`, seen);
}

/** What a send has recorded. A foreign client can record anything, and a POST may have been made all the same. */
function checkpointOf(details: unknown): SendCheckpoint | null {
  if (details === null || details === undefined) return null;
  return isSendCheckpoint(details) ? details : { baseline: null, sentAt: Date.now() };
}

function unknownResult(why: string, { checkpoint }: SeenCheckpoint): SendResult {
  const outcome = { verdict: 'unknown', label: 'no report', message: singleLine(why, 300) } as const;
  return { kind: 'posted', ...(checkpoint ?? { baseline: null, sentAt: Date.now() }), outcome };
}

/**
 * Reads until it is cancelled, which is how it ends; nothing before the server has the checkpoint of the send: a task
 * that waits in its queue, behind a rate limit for instance, moves no job.
 *
 * @returns what was read since the POST; null where it has not begun
 */
async function readBeside(
  context: FollowUpContext,
  earlier: Watch | null,
  seen: SeenCheckpoint,
): Promise<Watch | null> {
  const { state } = context;
  const begunAt = Date.now();
  let watch: Watch | null = null;
  try {
    let waitMs = READ_BESIDE_AFTER_MS;
    for (;;) {
      await sleep(context.withinHistoryBudget(waitMs), { summary: 'look whether the POST has begun' });
      context.show();
      if (watch === null) {
        const checkpoint = await pendingCheckpoint();
        if (checkpoint !== null) {
          seen.checkpoint = checkpoint;
          watch = newWatch(checkpoint.baseline, Math.min(checkpoint.sentAt, Date.now()), earlier);
          state.watch = watch;
        }
      }
      if (watch !== null) await readAndRecord(context, watch);
      context.show();
      waitMs = pollInterval(state.plan.polling, Date.now() - begunAt, Math.random);
    }
  } catch (error) {
    if (!isCancellation(error)) throw error;
  }
  return watch;
}

async function pendingCheckpoint(): Promise<SendCheckpoint | null> {
  try {
    return checkpointOf(await pendingDetailsProxy.pendingDetails('sendMessage'));
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    return null;
  }
}
