import { nextWait, type Random } from '../../core/cadence';
import { belief } from '../../core/evidence';
import type { JobState } from '../../core/job';
import type { Polling } from '../../core/request';
import type { Evidence, Phase } from '../../core/result';
import { isLost, isUnauthorized } from '../../core/tally';
import type { FollowUpState, Watch } from './state';

/** What the watch does next. */
type WatchStep =
  | { readonly kind: 'settled'; readonly evidence: Evidence }
  | { readonly kind: 'lost' }
  | { readonly kind: 'overdue' }
  | {
      readonly kind: 'wait';
      readonly phase: Phase;
      readonly waitMs: number;
      /** The read after the wait is a single one; else it may go on by itself until the job changes. */
      readonly single: boolean;
      /** The evidence for a status that is believed while its link is waited for. */
      readonly evidence: Evidence | null;
    };

/**
 * Decides by what was seen so far. Nothing here reads a clock or a service.
 *
 * @param watch what was read since the send
 * @param lastAsked when the two latest reads, answered or not, were asked for, the latest one first: one asked for at the
 *   deadline is the last, unless one more equal read is all that is missing
 */
export function nextStep(
  state: Readonly<FollowUpState>,
  watch: Watch,
  now: number,
  lastAsked: readonly [number, number],
  random: Random,
): WatchStep {
  const { plan, deadlineAt, job } = state;
  const { observations, trouble } = watch;
  const held = belief(observations, watch.askedAt, plan.confirmMs);
  const phase: Phase | null = isUnauthorized(trouble) ? 'unauthorized' : null;

  if (held.kind === 'believed') {
    const { evidence } = held;
    const firstSeenAt = observations.streak?.since ?? now;
    const remaining = job === null ? 0 : settleRemaining(job, firstSeenAt, now, plan.settleMs);
    if (remaining === 0 || now >= deadlineAt) return { kind: 'settled', evidence };
    const waitMs = Math.min(remaining, nextWait(plan.polling, 0, trouble, random));
    return { kind: 'wait', phase: phase ?? 'settling', waitMs, single: true, evidence };
  }
  if (isLost(trouble, lastAsked[0], plan.confirmMs)) return { kind: 'lost' };
  if (now >= deadlineAt) {
    const lastReads = held.kind === 'doubted' && held.holdMs === 0 ? 2 : 1;
    if (lastAsked.filter((at) => at >= deadlineAt).length >= lastReads) return { kind: 'overdue' };
    return { kind: 'wait', phase: phase ?? 'watching', waitMs: 0, single: true, evidence: null };
  }
  if (held.kind === 'doubted') {
    const readAgainMs = nextWait(plan.polling, 0, trouble, random);
    // The read that ends the hold comes at its end, not an interval later.
    const waitMs =
      held.holdMs > 0 && trouble.last === null ? Math.min(held.holdMs, readAgainMs) : readAgainMs;
    return { kind: 'wait', phase: phase ?? 'confirming', waitMs, single: true, evidence: null };
  }
  const ageMs = now - watch.since;
  return {
    kind: 'wait',
    phase: phase ?? 'watching',
    waitMs: nextWait(plan.polling, ageMs, trouble, random),
    single: false,
    evidence: null,
  };
}

/**
 * Whether the next read may be made by an activity that polls on: after the first polls, while the job stays as it is, and while the
 * service has an answer or is only late with it. What follows a change is read once.
 */
export function mayPollOn({ timerPolls }: Polling, { polls, steady, trouble }: Watch): boolean {
  if (timerPolls === 'all' || polls < timerPolls) return false;
  return steady && trouble.notFound === null && !isUnauthorized(trouble);
}

/**
 * For how many more milliseconds a believed job is re-read for a late `prLink`; 0 when there is nothing to wait for.
 *
 * The service may fill the link after `completed` (specification: "populated once the agent has created a pull
 * request"), and a turn that changed no file leaves it null for ever: only time tells the two apart.
 *
 * @param since when the believed status was first heard, in milliseconds since the epoch
 */
export function settleRemaining(job: JobState, since: number, now: number, settleMs: number): number {
  if (job.status !== 'completed' || job.prLink !== null) return 0;
  return Math.max(0, since + settleMs - now);
}
