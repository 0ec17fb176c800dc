import type { Trouble } from '../../core/activities';
import { nextWait, type Random } from '../../core/cadence';
import { belief, type Observations } from '../../core/evidence';
import { isTerminal } from '../../core/job';
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
 * @param watch what was read since the POST
 * @param lastAskedAt when the latest read, answered or not, was asked for: one asked for at the deadline is the last
 */
export function nextStep(
  { plan, deadlineAt }: Pick<FollowUpState, 'plan' | 'deadlineAt'>,
  watch: Watch,
  now: number,
  lastAskedAt: number,
  random: Random,
): WatchStep {
  const { observations, trouble, last } = watch;
  const held = belief(observations, plan.confirmMs);
  const evidence = held.kind === 'believed' ? held.evidence : null;
  const read = (phase: Phase, waitMs: number, single = true): WatchStep => ({
    ...{ kind: 'wait', phase: isUnauthorized(trouble) ? 'unauthorized' : phase, waitMs, single, evidence },
  });

  if (evidence !== null) {
    const settledAt = settleEnd(observations, plan.settleMs);
    if (settledAt === null || now >= deadlineAt) return { kind: 'settled', evidence };
    return read('settling', waitUntil(settledAt, plan.polling, trouble, now, random));
  }
  if (isLost(trouble, lastAskedAt, plan.confirmMs)) return { kind: 'lost' };
  if (now >= deadlineAt) return lastAskedAt >= deadlineAt ? { kind: 'overdue' } : read('watching', 0);
  if (last !== null && isTerminal(last.status)) {
    const until = held.kind === 'doubted' ? held.until : observations.freshFrom;
    return read('confirming', waitUntil(until, plan.polling, trouble, now, random));
  }
  return read('watching', nextWait(plan.polling, now - watch.since, trouble, random), false);
}

/**
 * The wait before the next read while something becomes true with time alone: the initial interval, and no longer than to
 * that moment, when an answer decides. In trouble the service's wishes come first.
 */
export function waitUntil(
  at: number,
  polling: Polling,
  trouble: Trouble,
  now: number,
  random: Random,
): number {
  const waitMs = nextWait(polling, 0, trouble, random);
  return trouble.last === null && at > now ? Math.min(waitMs, at - now) : waitMs;
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
 * Until when a believed job is re-read for a late `prLink`; null when there is nothing to wait for: an answer that was asked
 * for at the end of `settle` or later has shown none.
 *
 * The service may fill the link after `completed` (specification: "populated once the agent has created a pull
 * request"), and a turn that changed no file leaves it null for ever: only time tells the two apart.
 */
function settleEnd({ fresh }: Observations, settleMs: number): number | null {
  if (fresh?.job.status !== 'completed' || fresh.job.prLink !== null) return null;
  const endsAt = fresh.since + settleMs;
  return fresh.askedAt >= endsAt ? null : endsAt;
}
