import type { JobResponse } from '../contract/activities';
import type { SendOutcome } from '../contract/send-result';
import { type AgentJob, isTerminal } from '../contract/job';
import type { DeliveryDecision } from '../contract/result';
import { applySendOutcome } from './apply-send';
import { addObservation, isDeliveryShown } from './evidence';
import { addFailure, NO_FAILURES } from './failure-streak';
import { grantOperatorPermit, grantResendPermit } from './permits';
import { addCounts } from '../contract/response-counts';
import { type DeliveryState, type FollowUpState, getObservations } from './state';

/** An event of a follow-up. Times are in milliseconds since the epoch, by the workflow's clock. */
export type FollowUpEvent =
  | {
      readonly kind: 'send ended';
      readonly outcome: SendOutcome;
      /** The run ID of the job lock, as in `SendResult`. The value is null if the send did not report its result. */
      readonly lockRunId: string | null;
      /** When the send started. */
      readonly startedAt: number;
      readonly at: number;
      /** The maximum time from the request of a send permission to the end of its POST, in milliseconds. */
      readonly maxPostMs: number;
    }
  | ({ readonly kind: 'read ended' } & CompletedRead)
  /** `pollJob` ended: the number of its reads that returned the known job, and the response that ended the poll, if there was one. */
  | {
      readonly kind: 'poll ended';
      readonly unchangedReads: number;
      readonly status: string;
      readonly last: Omit<CompletedRead, 'at'> | null;
      /** Whether an update or a cancellation interrupted the poll. The next read then follows at once. */
      readonly isInterrupted: boolean;
      readonly at: number;
    }
  /** The wait for the job lock ended. `lockRunId` is null if it is not known whether the lock was acquired. */
  | { readonly kind: 'lock wait ended'; readonly lockRunId: string | null }
  /** Reads can't show whether the message arrived, or `reconcileTimeout` is over, so `onUnknownDelivery` applies. */
  | { readonly kind: 'reconciling ended' }
  /** An operator sent `pollNow`. */
  | { readonly kind: 'read requested'; readonly at: number }
  | { readonly kind: 'deadline extended'; readonly deadlineAt: number }
  /** An operator sent `resolveDelivery`. `runId` is the run that may send the message again. */
  | { readonly kind: 'delivery decided'; readonly decision: DeliveryDecision; readonly runId: string }
  | { readonly kind: 'cancelled' };

interface CompletedRead {
  readonly response: JobResponse;
  readonly requestedAt: number;
  /** When the response was received. */
  readonly at: number;
}

/** Makes the state after an event. No other function makes a new state from a state. */
export function apply(state: FollowUpState, event: FollowUpEvent): FollowUpState {
  switch (event.kind) {
    case 'send ended':
      return applySendOutcome(state, event);
    case 'read ended':
      return applyRead(state, event);
    case 'poll ended':
      return applyPoll(state, event);
    case 'lock wait ended':
      return { ...state, lockHolder: null, jobLock: { runId: event.lockRunId } };
    case 'reconciling ended':
      return applyReconciled(state);
    case 'read requested':
      return { ...state, pollNowAt: event.at };
    case 'deadline extended':
      return { ...state, deadlineAt: Math.max(state.deadlineAt, event.deadlineAt) };
    case 'delivery decided':
      return applyDecision(state, event.decision, event.runId);
    case 'cancelled':
      return { ...state, isCancelled: true };
  }
}

function applyRead(state: FollowUpState, { response, requestedAt, at }: CompletedRead): FollowUpState {
  const { pollNowAt } = state;
  const after = {
    ...countReads(state, response.kind === 'job' ? response.job.status : response.label, 1),
    lastRequestAt: requestedAt,
    lastResponseAt: at,
    // A read that was in progress before the operator's request does not fulfill this request.
    pollNowAt: pollNowAt !== null && requestedAt < pollNowAt ? pollNowAt : null,
  };
  if (response.kind === 'failure') return { ...after, failures: addFailure(state.failures, response, at) };
  const { job } = response;
  const delivery = observeDelivery(state.delivery, job, requestedAt, at);
  const isWaitOver = isTerminal(job.status) || delivery.kind === 'accepted';
  const waitingForJob = isWaitOver ? null : after.waitingForJob;
  return { ...after, job, delivery, waitingForJob, failures: NO_FAILURES };
}

/** Adds a readable response to the reads since the POST. A fresh response can show that a message of unknown delivery arrived. */
function observeDelivery(
  delivery: DeliveryState,
  job: AgentJob,
  requestedAt: number,
  at: number,
): DeliveryState {
  if (delivery.kind !== 'unknown' && delivery.kind !== 'accepted') return delivery;
  const reads = addObservation(delivery.reads, job, requestedAt, at);
  if (delivery.kind === 'unknown' && isDeliveryShown(reads))
    return { kind: 'accepted', confirmedBy: 'read', reads };
  return { ...delivery, reads };
}

function applyPoll(state: FollowUpState, event: FollowUpEvent & { kind: 'poll ended' }): FollowUpState {
  const { unchangedReads, status, last, at, isInterrupted } = event;
  const counted = {
    ...countReads(state, status, unchangedReads),
    lastResponseAt: at,
    pollNowAt: isInterrupted ? at : state.pollNowAt,
  };
  return last === null ? counted : applyRead(counted, { ...last, at });
}

/**
 * Counts reads. The receipt counts only the reads since a POST that may have been processed, because it describes the message's
 * turn.
 */
function countReads(state: FollowUpState, label: string, reads: number): FollowUpState {
  const { waitingForJob, polls, responseCounts } = state;
  const counted = {
    ...state,
    waitingForJob: waitingForJob && { ...waitingForJob, reads: waitingForJob.reads + reads },
  };
  if (reads === 0 || getObservations(state) === null) return counted;
  return {
    ...counted,
    polls: polls + reads,
    responseCounts: addCounts(responseCounts, { [label]: reads }),
  };
}

/** Applies `onUnknownDelivery`. With `fail`, or if the one resend was used before, `nextStep` then ends the follow-up. */
function applyReconciled(state: FollowUpState): FollowUpState {
  const { delivery, plan } = state;
  if (delivery.kind !== 'unknown') return state;
  if (plan.onUnknownDelivery === 'assume-delivered')
    return { ...state, delivery: { kind: 'accepted', confirmedBy: 'assumed', reads: delivery.reads } };
  const permit = plan.onUnknownDelivery === 'resend' ? grantResendPermit(state) : null;
  return {
    ...state,
    delivery: { ...delivery, isReconcilingOver: true, permit },
    isResendUsed: state.isResendUsed || permit !== null,
  };
}

function applyDecision(state: FollowUpState, decision: DeliveryDecision, runId: string): FollowUpState {
  const { delivery } = state;
  if (delivery.kind !== 'unknown') return state;
  if (decision === 'not-delivered')
    return { ...state, delivery: { ...delivery, permit: grantOperatorPermit(runId) } };
  return { ...state, delivery: { kind: 'accepted', confirmedBy: 'operator', reads: delivery.reads } };
}
