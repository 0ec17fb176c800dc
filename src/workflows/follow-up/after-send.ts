import type { ApplicationFailure } from '@temporalio/workflow';
import { SEND_PERMISSION_MS } from '../../core/cadence';
import { decideSend } from '../../core/evidence';
import { type AgentJob, jobState } from '../../core/job';
import type { Delivery, Phase } from '../../core/result';
import { afterReading, isLost, isUnauthorized, textOf } from '../../core/tally';
import type { Posted, PostOutcome, SendResult, SendTrouble, Trouble } from '../../core/activities';
import { followUpFailure, lostJob, sentence } from './failures';
import { confirmed, earlierBaseline, type FollowUpState, newWatch, record, told } from './state';

type AfterSend =
  | { readonly kind: 'delivered' }
  /** Nobody can tell whether the message arrived. */
  | { readonly kind: 'unknown'; readonly why: SendTrouble }
  /** Nothing was sent by it, and another try may. */
  | { readonly kind: 'again'; readonly phase: Phase; readonly trouble: Trouble }
  /** The job is active, and is waited for before another try. */
  | { readonly kind: 'wait for rest'; readonly job: AgentJob }
  | { readonly kind: 'failed'; readonly failure: ApplicationFailure };

/**
 * Takes the result of a send that has just ended into the state, and decides.
 *
 * @param askedAt when it was begun
 * @param trouble what the tries before it have met
 */
export function afterSend(
  state: FollowUpState,
  result: SendResult,
  askedAt: number,
  trouble: Trouble,
): AfterSend {
  const endedAt = Date.now();
  switch (result.kind) {
    case 'unread': {
      state.lastAnswer = textOf(result.trouble);
      const met = afterReading(trouble, result.trouble, endedAt);
      const phase = isUnauthorized(met) ? 'unauthorized' : 'baseline';
      return refusedLook(state, result.trouble, met, askedAt) ?? { kind: 'again', phase, trouble: met };
    }
    case 'not-permitted': {
      const { message } = result;
      state.lastAnswer = message;
      const met = { kind: 'trouble', label: 'not permitted', message } as const;
      return { kind: 'again', phase: 'baseline', trouble: afterReading(trouble, met, endedAt) };
    }
    case 'held-back':
      return afterLook(state, result.job, askedAt);
    case 'reset': {
      // The run before it may have made this POST, and the one further POST that `resend` allows.
      state.job = result.baseline ?? state.job;
      if (state.watch === null) state.baseline = result.baseline && jobState(result.baseline);
      state.watch = watchAfterReset(state, result.baseline);
      state.delivery = { ...state.delivery, verdict: 'unknown', sends: state.delivery.sends + 1 };
      state.resent = true;
      return inDoubt(state, result);
    }
    case 'posted':
      return afterPosting(state, result, askedAt, trouble);
  }
}

/** Once the job was read, or the message may have arrived, trouble is a delay, as in the watch. */
function refusedLook(
  state: FollowUpState,
  answer: SendTrouble,
  trouble: Trouble,
  askedAt: number,
): AfterSend | undefined {
  const { httpStatus, message } = answer;
  // Not by what is told of a run made by a reset, which must decide as its history did.
  if (state.job !== null || state.delivery.verdict === 'unknown') {
    const isGone = isLost(trouble, askedAt, state.plan.confirmMs);
    return isGone ? { kind: 'failed', failure: lostJob(state, answer) } : undefined;
  }
  if (httpStatus === 404)
    return failed('JobNotFound', `The service knows no such job: ${message}.`, state, answer);
  if (httpStatus !== 400 && !isUnauthorized(trouble)) return undefined;
  return refused(state, `The job can't be read: ${message}.`, answer);
}

/** The look forbids the POST, or shows that an earlier one has arrived. */
function afterLook(state: FollowUpState, job: AgentJob, askedAt: number): AfterSend {
  state.job = job;
  state.lastAnswer = job.status;
  const decision = decideSend(job, state.plan.whenActive, earlierBaseline(state, askedAt));
  if (decision === 'arrived' && state.watch !== null) {
    record(state.watch, job, askedAt, Date.now());
    state.delivery = confirmed(state.delivery, 'read');
    return { kind: 'delivered' };
  }
  if (state.delivery.verdict === 'not-sent') state.baseline = jobState(job);
  if (decision !== 'reject') return { kind: 'wait for rest', job };
  return refused(state, `The job is ${job.status}, and whenActive is reject.`);
}

function afterPosting(
  state: FollowUpState,
  { baseline, outcome, sentAt }: Posted,
  askedAt: number,
  trouble: Trouble,
): AfterSend {
  const endedAt = Date.now();
  state.job = baseline ?? state.job;
  if (outcome.verdict !== 'accepted') state.lastAnswer = outcome.message;
  state.delivery = afterPost(state.delivery, outcome);
  // An earlier POST that may have arrived has a baseline of its own.
  if (outcome.verdict !== 'not-sent' || state.delivery.verdict === 'not-sent')
    state.baseline = baseline && jobState(baseline);
  if (outcome.verdict === 'not-sent') {
    if (!outcome.repeatable) return refused(state, sentence(outcome.message), outcome);
    const met = afterReading(trouble, { kind: 'trouble', ...outcome }, endedAt);
    return { kind: 'again', phase: 'sending', trouble: met };
  }
  // The worker's clock may be wrong by minutes: the POST was made between the start of the send and now.
  state.sentAt = Math.max(askedAt, Math.min(sentAt, endedAt));
  // The POST ended before the workflow heard of it: freshness counts from then, by the workflow's clock.
  state.watch = newWatch(baseline, state.sentAt, endedAt + state.plan.confirmMs, state.watch);
  if (outcome.verdict !== 'accepted') {
    const isUnknown = outcome.verdict === 'unknown';
    return isUnknown ? inDoubt(state, outcome) : refused(state, sentence(outcome.message), outcome);
  }
  // The POST's own answer is shown, and proves nothing of the turn: that is left to the reads.
  state.job = outcome.job;
  state.lastAnswer = outcome.job.status;
  state.watch.last = jobState(outcome.job);
  return { kind: 'delivered' };
}

/** `sends` counts POSTs that were not provably kept from the service. No later one takes back that a message may have arrived. */
function afterPost(before: Delivery, outcome: PostOutcome): Delivery {
  const reachedService = outcome.verdict !== 'not-sent' || outcome.answered;
  const sends = before.sends + (reachedService ? 1 : 0);
  if (outcome.verdict === 'accepted') return { verdict: 'accepted', confirmedBy: 'response', sends };
  const verdict = before.verdict === 'unknown' ? 'unknown' : outcome.verdict;
  return { verdict, confirmedBy: null, sends };
}

/**
 * The watch of a run that a reset has made: the POST of the run before it begins while its permission is valid, and ends within
 * one HTTP time limit.
 *
 * @param job as it is now: the baseline where no POST is known
 */
function watchAfterReset({ watch, plan, settings }: FollowUpState, job: AgentJob | null) {
  const now = Date.now();
  const freshFrom = now + SEND_PERMISSION_MS + (settings?.httpTimeoutMs ?? 0) + plan.confirmMs;
  return newWatch(watch === null ? job : watch.observations.baseline, now, freshFrom, watch);
}

function inDoubt(state: FollowUpState, why: SendTrouble): AfterSend {
  state.lastAnswer = why.message;
  state.doubt = why.message;
  return { kind: 'unknown', why };
}

/** If an earlier POST may have arrived, the delivery stays unknown, even if a later one is refused. */
function refused(state: FollowUpState, reason: string, answer?: SendTrouble): AfterSend {
  const type = told(state).verdict === 'unknown' ? 'DeliveryUnknown' : 'FollowUpRejected';
  return failed(type, reason, state, answer);
}

function failed(...failure: Parameters<typeof followUpFailure>): AfterSend {
  return { kind: 'failed', failure: followUpFailure(...failure) };
}
