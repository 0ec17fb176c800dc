import { type RequestFailure } from '../contract/request-failure';
import { isUnreported, type PostedSendOutcome, type SendOutcome } from '../contract/send-result';
import { toJobState } from '../contract/job';
import type { FollowUpEvent } from './apply';
import { decideSend, type Observations, addObservation, createObservations } from './evidence';
import { addFailure, NO_FAILURES } from './failure-streak';
import type { DeliveryState, FollowUpState } from './state';

type SendEndedEvent = FollowUpEvent & { kind: 'send ended' };

/** Makes the state after one send. If a POST may have been processed, the new state has no permit. */
export function applySendOutcome(previousState: FollowUpState, event: SendEndedEvent): FollowUpState {
  const { outcome, startedAt, at } = event;
  const state: FollowUpState = {
    ...previousState,
    jobLock: getNextJobLock(previousState, event),
    waitingForJob: null,
    pollNowAt: null,
    lastRequestAt: startedAt,
    lastResponseAt: at,
  };
  switch (outcome.kind) {
    case 'lock-held':
      return { ...state, lockHolder: outcome.holder, failures: NO_FAILURES };
    case 'not-read':
    case 'postponed': {
      // The job of the baseline read is kept, although nothing was sent: after one successful read, a 400, 403 or 404 no
      // longer ends the follow-up as on a first read.
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

/** A send that did not report its result may have acquired the job lock, whose run ID is then not known. */
function getNextJobLock({ jobLock, plan }: FollowUpState, { outcome, lockRunId }: SendEndedEvent) {
  if (plan.whenActive !== 'wait' || outcome.kind === 'lock-held') return null;
  return { runId: lockRunId ?? jobLock?.runId ?? null };
}

/** Applies a baseline read that does not allow the POST, or that shows that an earlier POST arrived. */
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

/** Applies a reset. The run before the reset may have made this POST, and also the one further POST of `resend`. */
function applyReset(
  state: FollowUpState,
  sendOutcome: SendOutcome & { kind: 'reset' },
  { at, maxPostMs }: SendEndedEvent,
): FollowUpState {
  const { delivery, plan } = state;
  // An earlier POST keeps its baseline. Without an earlier POST, the job in its current state is the best known baseline.
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
      createObservations(baseline, at + maxPostMs + plan.maxStalenessMs),
    ),
    sends: state.sends + 1,
    isResendUsed: true,
    failures: NO_FAILURES,
  };
}

function applyPost(
  state: FollowUpState,
  sendOutcome: PostedSendOutcome,
  { startedAt, at, maxPostMs }: SendEndedEvent,
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
  // The permit stays, because the agent service processed nothing.
  if (outcome.verdict === 'not-sent') return { ...read, failures: addFailure(state.failures, outcome, at) };
  // The worker's clock may be wrong, but the POST was permitted between the start of the send and now.
  const sentAt = Math.max(startedAt, Math.min(sendOutcome.sentAt, at));
  // If no worker reported the POST, it may still be in progress after the send has ended.
  const endedBy = isUnreported(outcome) ? Math.max(at, sentAt + maxPostMs) : at;
  const earlierFreshFrom = delivery.kind === 'unknown' ? delivery.reads.freshFrom : 0;
  const reads = createObservations(baseline, Math.max(endedBy + plan.maxStalenessMs, earlierFreshFrom));
  const posted = { ...read, sentAt, failures: NO_FAILURES };
  switch (outcome.verdict) {
    case 'accepted':
      // The progress shows the job from the POST's response, but this job is not evidence, because only reads are evidence.
      return { ...posted, job: outcome.job, delivery: { kind: 'accepted', confirmedBy: 'response', reads } };
    case 'unknown':
      return { ...posted, delivery: unknownDelivery(outcome, reads) };
    case 'rejected':
      return { ...posted, delivery: { kind: 'rejected', reason: outcome, isEarlierPostUnknown: !isUnsent } };
  }
}

/** Makes the delivery after a POST that may have been processed. The POST has used its permit. */
function unknownDelivery(
  { label, message, httpStatus, serviceMessage }: RequestFailure,
  reads: Observations,
): DeliveryState {
  const reason = { label, message, httpStatus, serviceMessage };
  return { kind: 'unknown', reason, reads, isReconcilingOver: false, permit: null };
}
