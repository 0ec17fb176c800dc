import type { Evidence } from '../contract/delivery';
import type { JobState } from '../contract/job';
import type { Phase } from '../contract/progress';
import { type Polling, REQUEST_DEFAULTS } from '../contract/request';
import { nextWait, type Random } from '../polling/cadence';
import { belief, noSightings } from './evidence';
import { settleRemaining } from './settle';
import type { FollowUpState, WatchState } from './state';
import { isLost, isUnauthorized, NO_TROUBLE } from '../polling/trouble';

/** What the watch does next. */
export type WatchStep =
  | { readonly kind: 'settled'; readonly evidence: Evidence }
  | { readonly kind: 'lost' }
  | { readonly kind: 'overdue' }
  | {
      readonly kind: 'wait';
      readonly phase: Phase;
      readonly waitMs: number;
      /** Whether the read after the wait may poll on by itself until the job changes. */
      readonly patient: boolean;
      /** The evidence for a status that is believed while its link is waited for. */
      readonly evidence: Evidence | null;
    };

/** The watch as it begins with a send. */
export function watchFrom(baseline: JobState, sentAt: number): WatchState {
  return { sightings: noSightings(baseline), askedAt: sentAt, trouble: NO_TROUBLE };
}

/**
 * Decides by what was seen so far. Nothing here reads a clock or a service.
 *
 * @param watch what the watch has seen
 * @param lastAskedAt when the latest read, answered or not, was asked for: one asked for at the deadline is the last
 */
export function nextStep(
  state: Readonly<FollowUpState>,
  watch: WatchState,
  now: number,
  lastAskedAt: number,
  random: Random,
): WatchStep {
  const { plan, deadlineAt, job } = state;
  const { sightings, trouble } = watch;
  const held = belief(sightings, watch.askedAt, plan.confirmMs);
  const phase: Phase | null = isUnauthorized(trouble) ? 'unauthorized' : null;

  if (held.kind === 'believed') {
    const { evidence } = held;
    const firstSeenAt = sightings.streak?.since ?? now;
    const remaining = job === null ? 0 : settleRemaining(job, firstSeenAt, now, plan.settleMs);
    if (remaining === 0 || now >= deadlineAt) return { kind: 'settled', evidence };
    const waitMs = Math.min(remaining, nextWait(plan.polling, 0, trouble, random));
    return { kind: 'wait', phase: phase ?? 'settling', waitMs, patient: false, evidence };
  }
  if (isLost(trouble, lastAskedAt, plan.confirmMs)) return { kind: 'lost' };
  if (now >= deadlineAt) {
    if (lastAskedAt >= deadlineAt) return { kind: 'overdue' };
    return { kind: 'wait', phase: phase ?? 'watching', waitMs: 0, patient: false, evidence: null };
  }
  if (held.kind === 'doubted') {
    const readAgainMs = nextWait(plan.polling, 0, trouble, random);
    // The read that ends the hold comes at its end, not an interval later.
    const waitMs =
      held.holdMs > 0 && trouble.last === null ? Math.min(held.holdMs, readAgainMs) : readAgainMs;
    return { kind: 'wait', phase: phase ?? 'confirming', waitMs, patient: false, evidence: null };
  }
  const ageMs = now - (state.sentAt ?? now);
  return {
    kind: 'wait',
    phase: phase ?? 'watching',
    waitMs: nextWait(plan.polling, ageMs, trouble, random),
    patient: mayBePatient(plan.polling, state.polls, watch),
    evidence: null,
  };
}

/**
 * Whether the next read may poll on by its own retries: after the first polls, while the job stays as it is, and while
 * the service has an answer or is only late with it. What follows a change is read once.
 */
export function mayBePatient(
  { timerPolls = REQUEST_DEFAULTS.polling.timerPolls }: Partial<Polling>,
  polls: number,
  { steady = false, trouble }: Pick<WatchState, 'steady' | 'trouble'>,
): boolean {
  if (timerPolls === 'all' || polls < timerPolls) return false;
  return steady && trouble.notFound === null && !isUnauthorized(trouble);
}
