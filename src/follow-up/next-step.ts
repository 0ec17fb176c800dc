import { isTerminal } from '../contract/job';
import type { Random } from './cadence';
import {
  endAfterDeadline,
  endAs,
  endIfJobMissing,
  endIfNotSendable,
  endUndelivered,
  endWithFailure,
} from './end-step';
import { canShowDelivery, canShowTurn, judgeEnd, linkWaitEndsAt } from './evidence';
import { grantFirstPermit, type SendPermit } from './permits';
import { sentence, unknownDeliveryReason } from './receipt';
import type { AcceptedDelivery, DeliveryState, FollowUpState } from './state';
import { earliestRequestAt, readAt, readOrPoll, phaseForRequest } from './step';
import type { Moment, Step } from './step';

/**
 * Decides the next step of a follow-up. For every state and time there is exactly one step, and only the lengths of waits are
 * random.
 *
 * Every POST needs a permit. While the message is unsent, the first permit allows a POST. After a POST that was provably not
 * processed, the first permit allows another POST. As soon as a POST may have been processed and no response shows the verdict, the
 * delivery is `unknown` and has no permit. A further POST then needs a new permit, from `onUnknownDelivery: resend` (once) or from
 * an operator. `apply` removes this permit when a POST with it may have been processed.
 *
 * @param now the workflow's time, in milliseconds since the epoch
 * @param minWaitMs the shortest wait before a request, in milliseconds, because a long history must last until the deadline
 */
export function nextStep(state: FollowUpState, now: number, random: Random, minWaitMs = 0): Step {
  const moment = { now, random, minWaitMs };
  const { delivery } = state;
  if (state.isCancelled) return endAs({ kind: 'cancelled' });
  switch (delivery.kind) {
    case 'unsent':
      return nextSendStep(state, grantFirstPermit(state), moment);
    case 'unknown':
      return delivery.permit === null
        ? nextReconcileStep(state, delivery, moment)
        : nextSendStep(state, delivery.permit, moment);
    case 'accepted':
      return nextWatchStep(state, delivery, moment);
    case 'rejected':
      return endUndelivered(state, sentence(delivery.reason.message), delivery.reason);
  }
}

/**
 * Decides the step while a POST is permitted. If the latest send found a held job lock or a job that is not idle, the follow-up
 * waits. Otherwise, the follow-up sends.
 */
function nextSendStep(state: FollowUpState, permit: SendPermit, moment: Moment): Step {
  const { delivery, job, deadlineAt, lockHolder, waitingForJob } = state;
  const endStep = endIfNotSendable(state);
  if (endStep !== null) return endStep;
  if (moment.now >= deadlineAt) return endAfterDeadline(state);
  if (lockHolder !== null) return { do: 'wait for job lock', phase: 'waiting-for-job', holder: lockHolder };
  if (waitingForJob !== null) return readOrPoll(state, 'waiting-for-job', deadlineAt, moment);
  const at = earliestRequestAt(state, moment);
  const phase = phaseForRequest(state, job === null ? 'starting' : 'sending');
  // After a POST of unknown delivery, a fresh baseline read can show that this POST arrived, and then nothing is sent.
  const isFresh = delivery.kind === 'unknown' && at >= delivery.reads.freshFrom;
  return { do: 'send', phase, at, permit, earlierBaseline: isFresh ? delivery.reads.baseline : null };
}

/**
 * Decides the step while it is unknown whether the message arrived, for example because the response to the POST was lost. Nothing
 * is sent. The job is read until a fresh response shows the message's turn, and `apply` then makes the delivery `accepted`.
 *
 * `onUnknownDelivery` applies if the job can't show the turn: the job was not idle before the POST, or its state before the POST is
 * not known. `onUnknownDelivery` also applies if no fresh response showed the turn during `reconcileTimeout`. The step
 * `conclude reconciling` then assumes the delivery, grants the one resend, or grants no permit. Without a permit, the follow-up fails
 * or waits for an operator's decision.
 *
 * The deadline or a deleted job ends the follow-up earlier, with the verdict `unknown`.
 */
function nextReconcileStep(
  state: FollowUpState,
  delivery: DeliveryState & { kind: 'unknown' },
  moment: Moment,
): Step {
  const { plan, deadlineAt } = state;
  const { reads, isReconcilingOver } = delivery;
  // `reconcileTimeout` counts from the end of the POST, and a read is fresh from `maxStaleness` after the POST's end on. Reading
  // continues until there was at least one fresh response.
  const endsAt = reads.freshFrom - plan.maxStalenessMs + plan.reconcileTimeoutMs;
  const isReconcileTimeoutOver = reads.freshStreak !== null && state.lastRequestAt >= endsAt;

  // `onUnknownDelivery` is `fail`, or it is `resend` and the one resend was used before.
  if (isReconcilingOver && plan.onUnknownDelivery !== 'ask')
    return endWithFailure('DeliveryUnknown', unknownDeliveryReason(state, delivery), delivery.reason);
  if (moment.now >= deadlineAt) return endAfterDeadline(state);
  if (!isReconcilingOver && (!canShowDelivery(reads) || isReconcileTimeoutOver))
    return { do: 'conclude reconciling', phase: 'reconciling' };
  const endStep = endIfJobMissing(state);
  if (endStep !== null) return endStep;
  if (isReconcilingOver) return readOrPoll(state, 'needs-decision', deadlineAt, moment);
  if (reads.freshStreak === null) return readAt(state, 'reconciling', reads.freshFrom, moment);
  return readOrPoll(state, 'reconciling', endsAt, moment);
}

/**
 * Decides the step after the message arrived. The job is read until a terminal status is accepted as the end of the message's turn
 * (docs/result.md#evidence). A completed job without a link is then read until it has its link, for at most `prLinkTimeout`.
 */
function nextWatchStep(state: FollowUpState, { reads }: AcceptedDelivery, moment: Moment): Step {
  const { plan, lastRequestAt, deadlineAt } = state;
  const judgment = judgeEnd(reads, plan.maxStalenessMs);

  if (judgment.kind === 'accepted') {
    const linkUntil = linkWaitEndsAt(reads, plan.prLinkTimeoutMs);
    if (linkUntil === null || moment.now >= deadlineAt) return endAs({ ...judgment, kind: 'result' });
    return readOrPoll(state, 'waiting-for-link', linkUntil, moment, judgment.since);
  }
  const endStep = endIfJobMissing(state);
  if (endStep !== null) return endStep;
  // At the deadline, the follow-up makes one last read.
  if (moment.now >= deadlineAt)
    return lastRequestAt >= deadlineAt
      ? endAfterDeadline(state)
      : readAt(state, 'watching', deadlineAt, moment);
  const phase = reads.last !== null && isTerminal(reads.last.status) ? 'confirming' : 'watching';
  // Nothing shows that the terminal status is new. The status is accepted if a read at `until` or later returns it again.
  if (judgment.kind === 'held') return readAt(state, phase, judgment.until, moment);
  if (reads.freshStreak !== null) return readOrPoll(state, phase, deadlineAt, moment);
  // Before a read is fresh, it can only show that the turn has started, and only if the job was idle before.
  if (!canShowTurn(reads)) return readAt(state, phase, reads.freshFrom, moment);
  return readOrPoll(state, phase, reads.freshFrom, moment);
}
