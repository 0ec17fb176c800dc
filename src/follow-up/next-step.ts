import type { Random } from './cadence';
import { canShowDelivery, canShowTurn, judgeEnd, linkWaitEnd } from './evidence';
import { isJobLost } from './failures';
import { isTerminal } from '../core/job';
import { firstPermit } from './permits';
import { jobLostEnd, overdueEnd, undeliveredEnd, unknownDeliveryEnd } from './endings';
import { nextSendStep } from './next-send-step';
import type { AcceptedDelivery, DeliveryState, FollowUpState } from './state';
import { endAs, type Moment, readAt, readOrPoll, type Step } from './step';

/**
 * Decides what a follow-up does next. For every state and time there is exactly one step; only the lengths of waits are random.
 *
 * Every POST needs a permit. While the message is unsent, the first permit allows a POST, again after a POST that was provably not
 * processed. Once a POST may have been processed, the delivery is `unknown` and has no permit: a further POST is made only if
 * `onUnknownDelivery: resend` (once) or an operator grants one, and `apply` removes it when a POST may have been processed.
 *
 * @param now the workflow's time, in milliseconds since the epoch
 * @param minWaitMs the shortest wait before a request: a history that has become long must last until the deadline
 */
export function nextStep(state: FollowUpState, now: number, random: Random, minWaitMs = 0): Step {
  const moment = { now, random, minWaitMs };
  const { delivery } = state;
  if (state.isCancelled) return endAs({ kind: 'cancelled' });
  switch (delivery.kind) {
    case 'unsent':
      return nextSendStep(state, firstPermit(state), moment);
    case 'unknown':
      return delivery.permit === null
        ? nextReconcileStep(state, delivery, moment)
        : nextSendStep(state, delivery.permit, moment);
    case 'accepted':
      return nextWatchStep(state, delivery, moment);
    case 'rejected':
      return undeliveredEnd(state, delivery.reason);
  }
}

/**
 * The message may have arrived, for example because the response to the POST was lost. Nothing is sent: the job is read until a
 * fresh response shows the message's turn, which makes the delivery `accepted` in `apply`.
 *
 * If the job can't show the turn (it was active before the POST, or is not known), or if no fresh response showed it for
 * `reconcileTimeout`, `onUnknownDelivery` applies: the step `conclude reconciling` assumes the delivery, grants the one resend, or
 * leaves the follow-up without a permit, which then fails or waits for an operator's decision. The deadline or a deleted job ends
 * the follow-up earlier, with the verdict `unknown`.
 */
function nextReconcileStep(
  state: FollowUpState,
  delivery: DeliveryState & { kind: 'unknown' },
  moment: Moment,
): Step {
  const { plan, failures, lastRequestAt, deadlineAt } = state;
  const { reads, since } = delivery;
  const known = reads.last ?? reads.baseline;
  // `reconcileTimeout` counts from the end of the POST, and a read is fresh from `maxStaleness` after it. Reading continues until
  // there was at least one fresh response.
  const endsAt = reads.freshFrom - plan.maxStalenessMs + plan.reconcileTimeoutMs;
  const isReadToTheEnd = reads.fresh !== null && lastRequestAt >= endsAt;

  if (delivery.isReconciled && plan.onUnknownDelivery !== 'ask') return unknownDeliveryEnd(state, delivery);
  if (moment.now >= deadlineAt) return overdueEnd(state);
  if (!delivery.isReconciled && (!canShowDelivery(reads) || isReadToTheEnd))
    return { do: 'conclude reconciling', phase: 'reconciling' };
  if (state.job !== null && isJobLost(failures, lastRequestAt, plan.maxStalenessMs, reads.freshFrom))
    return jobLostEnd(state);
  if (delivery.isReconciled) {
    const phase = 'needs-decision';
    return readOrPoll(state, { phase, known, since, reads: state.polls, until: deadlineAt }, moment);
  }
  if (reads.fresh === null) return readAt(state, 'reconciling', reads.freshFrom, moment);
  const phase = 'reconciling';
  return readOrPoll(state, { phase, known, since, reads: state.polls, until: endsAt }, moment);
}

/** Whether an operator must decide about an unknown delivery. */
export function isDecisionNeeded({ delivery, plan }: FollowUpState): boolean {
  const isOpen = delivery.kind === 'unknown' && delivery.isReconciled && delivery.permit === null;
  return isOpen && plan.onUnknownDelivery === 'ask';
}

/**
 * The message arrived: the job is read until evidence shows that a terminal status is the end of the message's turn, and then, for
 * `prLinkTimeout` at most, until a completed job has its link.
 */
function nextWatchStep(state: FollowUpState, delivery: AcceptedDelivery, moment: Moment): Step {
  const { plan, failures, lastRequestAt, deadlineAt, polls } = state;
  const { reads, since } = delivery;
  const known = reads.last;
  const judgment = judgeEnd(reads, plan.maxStalenessMs);

  if (judgment.kind === 'accepted') {
    const linkUntil = linkWaitEnd(reads, plan.prLinkTimeoutMs);
    if (linkUntil === null || moment.now >= deadlineAt) return endAs({ ...judgment, kind: 'result' });
    const phase = 'waiting-for-link';
    return readOrPoll(state, { phase, known, since: judgment.since, reads: polls, until: linkUntil }, moment);
  }
  if (isJobLost(failures, lastRequestAt, plan.maxStalenessMs, reads.freshFrom)) return jobLostEnd(state);
  // At the deadline, one last read is made.
  if (moment.now >= deadlineAt)
    return lastRequestAt >= deadlineAt ? overdueEnd(state) : readAt(state, 'watching', deadlineAt, moment);
  const phase = known !== null && isTerminal(known.status) ? 'confirming' : 'watching';
  // Nothing shows that the terminal status is new: one read decides, when the status has stayed the same for long enough.
  if (judgment.kind === 'held') return readAt(state, phase, judgment.until, moment);
  if (reads.fresh !== null)
    return readOrPoll(state, { phase, known, since, reads: polls, until: deadlineAt }, moment);
  // Before a read is fresh, it can only show that the turn has started, and only if the job was idle before.
  if (!canShowTurn(reads)) return readAt(state, phase, reads.freshFrom, moment);
  return readOrPoll(state, { phase, known, since, reads: polls, until: reads.freshFrom }, moment);
}
