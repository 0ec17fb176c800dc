import { isTerminal } from '../contract/job';
import { formatDuration } from '../contract/duration';
import type { Delivery, Evidence, FollowUpProgress, Receipt } from '../contract/result';
import { canShowDelivery, judgeEnd, type Observations } from './evidence';
import { type DeliveryState, type FollowUpState, getObservations } from './state';
import type { Step } from './step';

/**
 * Returns the delivery as receipts report it. A run that a reset made reports `unknown` instead of `not-sent`, because the run
 * before the reset may have sent the message.
 */
export function reportedDelivery(state: FollowUpState): Delivery {
  const { delivery, sends, isReset } = state;
  switch (delivery.kind) {
    case 'accepted':
      return { verdict: 'accepted', confirmedBy: delivery.confirmedBy, sends };
    case 'unknown':
      return { verdict: 'unknown', confirmedBy: null, sends };
    case 'rejected':
      return { verdict: delivery.isEarlierPostUnknown ? 'unknown' : 'rejected', confirmedBy: null, sends };
    case 'unsent':
      return isReset
        ? { verdict: 'unknown', confirmedBy: null, sends: sends + 1 }
        : { verdict: 'not-sent', confirmedBy: null, sends };
  }
}

/** Returns the evidence; null until a terminal status is accepted as the end of the message's turn. */
export function findEvidence({ delivery, plan }: FollowUpState): Evidence | null {
  if (delivery.kind !== 'accepted') return null;
  const judgment = judgeEnd(delivery.reads, plan.maxStalenessMs);
  return judgment.kind === 'accepted' ? judgment.evidence : null;
}

/** @param endedAt in milliseconds since the epoch; null while the follow-up runs */
export function toReceipt(state: FollowUpState, endedAt: number | null): Receipt {
  return {
    requestId: state.plan.requestId,
    delivery: reportedDelivery(state),
    evidence: findEvidence(state),
    baseline: state.baseline,
    promptDigest: state.promptDigest,
    polls: state.polls,
    sentAt: isoTime(state.sentAt),
    endedAt: isoTime(endedAt),
    responseCounts: state.responseCounts,
  };
}

/**
 * Returns the progress while a step is performed. A send in progress may have made its POST at any moment, so the delivery is
 * `unknown`. `deliveryBeforeSend` is the delivery that applies if the Temporal server has recorded no send permission.
 *
 * @param isSending whether the step `send` has started its activity
 */
export function toFollowUpProgress(state: FollowUpState, step: Step, isSending: boolean): FollowUpProgress {
  const delivery = reportedDelivery(state);
  const reason = findUnknownDeliveryReason(state) ?? undefined;
  const common = {
    phase: step.phase,
    job: state.job,
    evidence: findEvidence(state),
    responseCounts: state.responseCounts,
    polls: state.polls,
    nextPollAt: isoTime('at' in step && !isSending ? step.at : null),
    deadlineAt: new Date(state.deadlineAt).toISOString(),
    lastResponse: lastResponseText(state),
  };
  if (!isSending) return { ...common, delivery, deliveryUnknownReason: reason };
  return {
    ...common,
    delivery: { verdict: 'unknown', confirmedBy: null, sends: state.sends + 1 },
    deliveryUnknownReason:
      reason ?? 'the message is being sent, and the worker has not reported the result yet',
    deliveryBeforeSend: delivery,
  };
}

/** Returns why it is unknown whether the message arrived; null if the delivery is not unknown. */
export function findUnknownDeliveryReason(state: FollowUpState): string | null {
  return state.delivery.kind === 'unknown' ? unknownDeliveryReason(state, state.delivery) : null;
}

/** Returns why it is unknown whether the message arrived, in one or two sentences. */
export function unknownDeliveryReason(
  { plan }: FollowUpState,
  { reason, reads, isReconcilingOver }: DeliveryState & { kind: 'unknown' },
): string {
  const failureSentence = sentence(reason.message);
  if (!isReconcilingOver) return failureSentence;
  const readingTime = formatDuration(plan.reconcileTimeoutMs);
  return canShowDelivery(reads)
    ? `${failureSentence} Reading the job for ${readingTime} showed no change that the message caused.`
    : `${failureSentence} Reading the job can't show whether the message arrived, because the job was not idle before the POST, or its state before the POST is not known.`;
}

/**
 * Returns the latest response, error or reason to wait as text, such as `completed` or `http 503: try later`; null before the first
 * of these.
 */
export function lastResponseText(state: FollowUpState): string | null {
  const { delivery, failures, job, lockHolder } = state;
  if (failures.lastFailure !== null) return failures.lastFailure.message;
  if (lockHolder !== null) return `waiting for the job lock, which ${lockHolder.workflowId} holds`;
  const reads = getObservations(state);
  if (delivery.kind === 'unknown' && delivery.reads.last === null) return delivery.reason.message;
  if (delivery.kind === 'rejected') return delivery.reason.message;
  if (job === null || reads === null) return job?.status ?? null;
  return job.status + describeAcceptanceDelay(reads, state);
}

/** Returns why a terminal status is not accepted yet, as the end of the text about the response. */
function describeAcceptanceDelay(reads: Observations, { plan }: FollowUpState): string {
  if (reads.last === null || !isTerminal(reads.last.status)) return '';
  if (reads.freshStreak === null) return `; not accepted before ${isoSecond(reads.freshFrom)}`;
  const judgment = judgeEnd(reads, plan.maxStalenessMs);
  return judgment.kind === 'held' ? `; must stay the same until ${isoSecond(judgment.until)}` : '';
}

/** Formats a time such as `2026-01-31T12:00:00Z`, rounded up to the second. */
export function isoSecond(at: number): string {
  return new Date(Math.ceil(at / 1_000) * 1_000).toISOString().replace('.000Z', 'Z');
}

function isoTime(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

/** Returns the text with a period, unless the text already ends with a punctuation mark. */
export function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
