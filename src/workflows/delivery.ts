import type { PostOutcome } from '../contract/activities';
import type { ConfirmedBy, Delivery } from '../contract/delivery';

/** What nobody has sent yet. */
export const NOT_SENT: Delivery = { verdict: 'not-sent', confirmedBy: null, sends: 0 };

/**
 * The receipt's view of the delivery after one more POST ended with `outcome`.
 *
 * `sends` counts the POSTs that were not provably kept from the service. A message that may have arrived once stays
 * so: a later POST that was certainly not sent takes nothing back.
 */
export function afterPost(before: Delivery, outcome: PostOutcome): Delivery {
  const sends = before.sends + (reachedService(outcome) ? 1 : 0);
  if (outcome.verdict === 'accepted') return { verdict: 'accepted', confirmedBy: 'response', sends };
  const verdict = before.verdict === 'unknown' ? 'unknown' : outcome.verdict;
  return { verdict, confirmedBy: null, sends };
}

/** The delivery where this run may not send, because the run before it may have done so. */
export function mayHaveBeenSentBefore(before: Delivery): Delivery {
  if (before.verdict === 'unknown') return before;
  return { verdict: 'unknown', confirmedBy: null, sends: Math.max(1, before.sends) };
}

/** The delivery once somebody other than the POST's answer says that the message arrived. */
export function confirmed(before: Delivery, confirmedBy: Exclude<ConfirmedBy, 'response'>): Delivery {
  return { ...before, verdict: 'accepted', confirmedBy };
}

function reachedService(outcome: PostOutcome): boolean {
  return outcome.verdict !== 'not-sent' || outcome.answered;
}
