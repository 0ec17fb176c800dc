import {
  ActivityFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  isCancellation,
  TimeoutFailure,
} from '@temporalio/workflow';
import { SEND_PERMISSION_MS } from '../../core/cadence';
import type { AgentJob, JobState } from '../../core/job';
import { singleLine } from '../../core/text';
import { isSendCheckpoint, isSendResult, type SendCheckpoint, type SendResult } from '../../core/wire';
import { pendingDetails, sendProxy, sendTimeLimitMs } from '../activity-proxies';
import { cancelledByHand, type FollowUpContext } from './context';
import { type FollowUpState, newWatch, type Watch } from './state';

/** The job before a POST of unknown delivery; null where there was none, or where a look at `askedAt` is not fresh. */
export function earlierBaseline({ delivery, watch }: FollowUpState, askedAt: number): JobState | null {
  if (delivery.verdict !== 'unknown' || watch === null) return null;
  return askedAt >= watch.observations.freshFrom ? watch.observations.baseline : null;
}

/**
 * Looks at the job and makes at most one POST, by one activity. If it may have been made, `state.watch` begins with it. A POST
 * under way is never abandoned, by cancellation, deadline or shutdown: its outcome is awaited first.
 *
 * @param permittedRunId the one run that may make the POST
 * @throws CancelledFailure when the workflow is cancelled and nothing was sent
 */
export async function send(
  context: FollowUpContext,
  prompt: string,
  permittedRunId: string,
): Promise<SendResult> {
  const { state } = context;
  const askedAt = Date.now();
  context.sending = true;
  context.enterBriefly('sending');
  try {
    const sent = await context.look((insist) => lookAndPost(context, prompt, permittedRunId, insist));
    // The worker's clock may be wrong by minutes: the POST was made between the start of the send and now.
    const within = (sentAt: number): number => Math.max(askedAt, Math.min(sentAt, Date.now()));
    const result = sent.kind === 'posted' ? { ...sent, sentAt: within(sent.sentAt) } : sent;
    state.watch = watchAfter(context, result);
    return result;
  } finally {
    context.sending = false;
  }
}

/** The watch after a send. The POST ended before the workflow heard of it: freshness counts from then, by the workflow's clock. */
function watchAfter({ state }: FollowUpContext, result: SendResult): Watch | null {
  const { watch, plan } = state;
  if (result.kind !== 'posted' || result.outcome.verdict === 'not-sent') return watch;
  return newWatch(result.baseline, result.sentAt, Date.now() + plan.confirmMs, watch);
}

/**
 * The watch of a run that was made by a reset and may not send. The POST that the run before it may have made begins while
 * its permission is valid, and ends within one HTTP time limit.
 *
 * @param look the job as it is now; it is the baseline where no POST is known
 */
export function watchAfterReset({ state, settings }: FollowUpContext, look: AgentJob | null): Watch {
  const { watch, plan } = state;
  const now = Date.now();
  const freshFrom = now + SEND_PERMISSION_MS + settings.httpTimeoutMs + plan.confirmMs;
  return newWatch(watch === null ? look : watch.observations.baseline, now, freshFrom, watch);
}

async function lookAndPost(
  { state, settings }: FollowUpContext,
  prompt: string,
  permittedRunId: string,
  insist: { readonly insist?: true },
): Promise<SendResult> {
  const own = CancellationScope.current();
  if (own.consideredCancelled) return own.cancelRequested;
  const { plan, delivery, deadlineAt } = state;
  const { projectId, jobId, whenActive } = plan;
  const now = Date.now();
  const nth = delivery.sends === 0 ? '' : ` (POST ${delivery.sends + 1})`;
  const summary = `look at the job, send the message${nth}`;
  const proxy = sendProxy(settings, projectId, Math.max(1, deadlineAt - now), summary);
  const input = { projectId, jobId, prompt, whenActive, permittedRunId, deadlineAt, ...insist };

  const { ended, done, scope } = cancelledByHand(() =>
    proxy
      .sendMessage({ ...input, earlierBaseline: earlierBaseline(state, now) })
      .then(
        (value: unknown) =>
          isSendResult(value) ? value : unknownResult('the send was completed by somebody else'),
        resultOfLostSend,
      ),
  );
  try {
    await condition(() => ended.length > 0);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    return await CancellationScope.nonCancellable(async () => {
      const before = ended.length === 0 ? await pendingCheckpoint() : null;
      scope.cancel();
      // The server may never give up a send that is paused: its time limit stands still.
      await condition(() => ended.length > 0, sendTimeLimitMs(settings));
      const [result] = ended;
      if (result !== undefined && !(result instanceof CancelledFailure)) return result;
      // An attempt may have begun while the cancellation was on its way.
      const checkpoint = before ?? (result === undefined ? await pendingCheckpoint() : null);
      if (checkpoint === null) throw error;
      return unknownResult('the follow-up was cancelled before the send reported', checkpoint);
    });
  }
  await done;
  const [result] = ended;
  if (result === undefined || result instanceof CancelledFailure)
    throw result ?? new TypeError('a send has no end');
  return result;
}

function resultOfLostSend(error: unknown): SendResult | CancelledFailure {
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  // The server cancels an activity only while no worker has taken it up; a POST under way is waited for.
  if (cause instanceof CancelledFailure) return cause;
  if (cause instanceof TimeoutFailure) {
    const checkpoint = checkpointOf(cause.lastHeartbeatDetails);
    if (checkpoint)
      return unknownResult('the worker that was to send the message did not report', checkpoint);
    // A POST begins only after the server has recorded the checkpoint, which it refuses once it has given the activity up.
    const message =
      cause.timeoutType === 'SCHEDULE_TO_START'
        ? 'no worker took the send up; does one poll the task queue of the sends?'
        : 'the worker that took the send up did not begin it';
    return { kind: 'not-permitted', message };
  }
  // The activity itself returns in every case: what fails is around it, before or after a POST.
  return unknownResult(`the send ended without an answer (${cause?.message ?? error.message})`);
}

/** What a send has recorded. A foreign client can record anything, and a POST may have been made all the same. */
function checkpointOf(details: unknown): SendCheckpoint | null {
  if (details === null || details === undefined) return null;
  return isSendCheckpoint(details) ? details : unknownCheckpoint();
}

function unknownCheckpoint(): SendCheckpoint {
  return { baseline: null, sentAt: Date.now() };
}

function unknownResult(why: string, checkpoint = unknownCheckpoint()): SendResult {
  const outcome = { verdict: 'unknown', label: 'no report', message: singleLine(why, 300) } as const;
  return { kind: 'posted', ...checkpoint, outcome };
}

/** What the pending send has recorded. Where the server does not answer, a POST may have been made. */
async function pendingCheckpoint(): Promise<SendCheckpoint | null> {
  const pending = await pendingDetails('sendMessage');
  return pending === null ? unknownCheckpoint() : checkpointOf(pending.details);
}
