import type { Posted, RequestFailure, SendEnd } from '../contract/activities';
import { jobState } from '../contract/job';
import type { FollowUpEvent } from './apply';
import { decideSend, type Observations, observe, startObservations } from './evidence';
import { addFailure, NO_FAILURES } from './failures';
import type { DeliveryState, FollowUpState } from './state';

type SendEnded = FollowUpEvent & { kind: 'send ended' };

/** The state after one send. The permit is used up by every end that may have made a POST. */
export function applySendEnd(before: FollowUpState, event: SendEnded): FollowUpState {
  const { end, startedAt, at } = event;
  const state: FollowUpState = {
    ...before,
    jobLock: jobLockAfter(before, event),
    waitingForJob: null,
    readRequestedAt: null,
    lastRequestAt: startedAt,
    lastResponseAt: at,
  };
  switch (end.kind) {
    case 'lock-held':
      return { ...state, lockHolder: end.holder, failures: NO_FAILURES };
    case 'not-read':
    case 'postponed': {
      // A job that was read exists, although it was not sent to.
      const { job = state.job, ...failure } = end;
      return { ...state, job, failures: addFailure(state.failures, failure, at) };
    }
    case 'job-not-ready':
      return applyBaselineRead(state, end, event);
    case 'reset':
      return applyReset(state, end, event);
    case 'posted':
      return applyPost(state, end, event);
  }
}

/** A send that did not report may have acquired the job lock. */
function jobLockAfter({ jobLock, plan }: FollowUpState, { end, lockRunId }: SendEnded) {
  if (plan.whenActive !== 'wait' || end.kind === 'lock-held') return null;
  return { runId: lockRunId ?? jobLock?.runId ?? null };
}

/** The baseline read does not allow the POST, or shows that an earlier POST arrived. */
function applyBaselineRead(
  state: FollowUpState,
  { job }: SendEnd & { kind: 'job-not-ready' },
  { startedAt, at }: SendEnded,
): FollowUpState {
  const { delivery, plan } = state;
  const read = { ...state, job, failures: NO_FAILURES };
  if (delivery.kind === 'unknown' && startedAt >= delivery.reads.freshFrom) {
    const reads = observe(delivery.reads, job, startedAt, at);
    if (decideSend(job, plan.whenActive, reads.baseline) === 'arrived')
      return { ...read, delivery: { kind: 'accepted', confirmedBy: 'read', reads } };
  }
  const baseline = delivery.kind === 'unsent' ? jobState(job) : state.baseline;
  return { ...read, baseline, waitingForJob: { since: at, reads: 0 } };
}

/** The run before a reset may have made this POST, and also the one further POST of `resend`. */
function applyReset(
  state: FollowUpState,
  end: SendEnd & { kind: 'reset' },
  { earlierPostEndsAt }: SendEnded,
): FollowUpState {
  const { delivery, plan } = state;
  // The baseline of an earlier POST is kept. Without one, the job as it is now is the best that is known.
  const baseline =
    delivery.kind === 'unknown' ? delivery.reads.baseline : end.baseline && jobState(end.baseline);
  return {
    ...state,
    job: end.baseline ?? state.job,
    baseline,
    delivery: unknownDelivery(end, startObservations(baseline, earlierPostEndsAt + plan.maxStalenessMs)),
    sends: state.sends + 1,
    isResendUsed: true,
    failures: NO_FAILURES,
  };
}

function applyPost(state: FollowUpState, end: Posted, { startedAt, at }: SendEnded): FollowUpState {
  const { outcome, baseline } = end;
  const { delivery, plan } = state;
  const isUnsent = delivery.kind === 'unsent';
  const hasReachedService = outcome.verdict !== 'not-sent' || outcome.reachedService;
  const read = {
    ...state,
    job: baseline ?? state.job,
    sends: state.sends + (hasReachedService ? 1 : 0),
    // An earlier POST that may have arrived keeps its own baseline.
    baseline: outcome.verdict !== 'not-sent' || isUnsent ? baseline && jobState(baseline) : state.baseline,
  };
  // The permit stays, because nothing was processed.
  if (outcome.verdict === 'not-sent') return { ...read, failures: addFailure(state.failures, outcome, at) };
  // The worker's clock may be wrong: the POST was made between the start of the send and now, and ended before now.
  const sentAt = Math.max(startedAt, Math.min(end.sentAt, at));
  const reads = startObservations(baseline, at + plan.maxStalenessMs);
  const posted = { ...read, sentAt, failures: NO_FAILURES };
  switch (outcome.verdict) {
    case 'accepted':
      // The job in the POST's own response is shown, and is no evidence: only reads are.
      return { ...posted, job: outcome.job, delivery: { kind: 'accepted', confirmedBy: 'response', reads } };
    case 'unknown':
      return { ...posted, delivery: unknownDelivery(outcome, reads) };
    case 'rejected':
      return { ...posted, delivery: { kind: 'rejected', reason: outcome, isEarlierPostUnknown: !isUnsent } };
  }
}

/** A POST may have been processed. It has used up its permit. */
function unknownDelivery(
  { label, message, httpStatus, serviceMessage }: RequestFailure,
  reads: Observations,
): DeliveryState {
  const reason = { label, message, httpStatus, serviceMessage };
  return { kind: 'unknown', reason, reads, isReconciled: false, permit: null };
}
