import type { PostedSendOutcome, RequestFailure, SendOutcome } from '../contract/activities';
import { toJobState } from '../contract/job';
import type { FollowUpEvent } from './apply';
import { decideSend, type Observations, addObservation, createObservations } from './evidence';
import { addFailure, NO_FAILURES } from './failure-streak';
import type { DeliveryState, FollowUpState } from './state';

type SendEndedEvent = FollowUpEvent & { kind: 'send ended' };

/** The state after one send. The permit is used up by every end that may have made a POST. */
export function applySendOutcome(previousState: FollowUpState, event: SendEndedEvent): FollowUpState {
  const { outcome, startedAt, at } = event;
  const state: FollowUpState = {
    ...previousState,
    jobLock: getNextJobLock(previousState, event),
    waitingForJob: null,
    readRequestedAt: null,
    lastRequestAt: startedAt,
    lastResponseAt: at,
  };
  switch (outcome.kind) {
    case 'lock-held':
      return { ...state, lockHolder: outcome.holder, failures: NO_FAILURES };
    case 'not-read':
    case 'postponed': {
      // A job that was read exists, although it was not sent to.
      const { job = state.job, ...failure } = outcome;
      return { ...state, job, failures: addFailure(state.failures, failure, at) };
    }
    case 'job-not-ready':
      return applyBaselineRead(state, outcome, event);
    case 'reset':
      return applyReset(state, outcome, event);
    case 'posted':
      return applyPost(state, outcome, event);
  }
}

/** A send that did not report may have acquired the job lock. */
function getNextJobLock({ jobLock, plan }: FollowUpState, { outcome, lockRunId }: SendEndedEvent) {
  if (plan.whenActive !== 'wait' || outcome.kind === 'lock-held') return null;
  return { runId: lockRunId ?? jobLock?.runId ?? null };
}

/** The baseline read does not allow the POST, or shows that an earlier POST arrived. */
function applyBaselineRead(
  state: FollowUpState,
  { job }: SendOutcome & { kind: 'job-not-ready' },
  { startedAt, at }: SendEndedEvent,
): FollowUpState {
  const { delivery, plan } = state;
  const read = { ...state, job, failures: NO_FAILURES };
  if (delivery.kind === 'unknown' && startedAt >= delivery.reads.freshFrom) {
    const reads = addObservation(delivery.reads, job, startedAt, at);
    if (decideSend(job, plan.whenActive, reads.baseline) === 'arrived')
      return { ...read, delivery: { kind: 'accepted', confirmedBy: 'read', reads } };
  }
  const baseline = delivery.kind === 'unsent' ? toJobState(job) : state.baseline;
  return { ...read, baseline, waitingForJob: { since: at, reads: 0 } };
}

/** The run before a reset may have made this POST, and also the one further POST of `resend`. */
function applyReset(
  state: FollowUpState,
  sendOutcome: SendOutcome & { kind: 'reset' },
  { earlierPostEndsAt }: SendEndedEvent,
): FollowUpState {
  const { delivery, plan } = state;
  // The baseline of an earlier POST is kept. Without one, the job as it is now is the best that is known.
  const baseline =
    delivery.kind === 'unknown'
      ? delivery.reads.baseline
      : sendOutcome.baseline && toJobState(sendOutcome.baseline);
  return {
    ...state,
    job: sendOutcome.baseline ?? state.job,
    baseline,
    delivery: unknownDelivery(
      sendOutcome,
      createObservations(baseline, earlierPostEndsAt + plan.maxStalenessMs),
    ),
    sends: state.sends + 1,
    isResendUsed: true,
    failures: NO_FAILURES,
  };
}

function applyPost(
  state: FollowUpState,
  sendOutcome: PostedSendOutcome,
  { startedAt, at }: SendEndedEvent,
): FollowUpState {
  const { outcome, baseline } = sendOutcome;
  const { delivery, plan } = state;
  const isUnsent = delivery.kind === 'unsent';
  const hasReachedService = outcome.verdict !== 'not-sent' || outcome.reachedService;
  const read = {
    ...state,
    job: baseline ?? state.job,
    sends: state.sends + (hasReachedService ? 1 : 0),
    // An earlier POST that may have arrived keeps its own baseline.
    baseline: outcome.verdict !== 'not-sent' || isUnsent ? baseline && toJobState(baseline) : state.baseline,
  };
  // The permit stays, because nothing was processed.
  if (outcome.verdict === 'not-sent') return { ...read, failures: addFailure(state.failures, outcome, at) };
  // The worker's clock may be wrong: the POST was made between the start of the send and now, and ended before now.
  const sentAt = Math.max(startedAt, Math.min(sendOutcome.sentAt, at));
  const reads = createObservations(baseline, at + plan.maxStalenessMs);
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
