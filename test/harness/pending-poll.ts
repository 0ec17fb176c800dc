import type { WorkflowExecutionDescription } from '@temporalio/client';
import { eventually } from '../../tools/lib/eventually';
import type { FollowUpUnderTest } from './follow-up-under-test';

/** A pending `pollJob`, as the Temporal server describes it. */
type PendingPoll = NonNullable<WorkflowExecutionDescription['raw']['pendingActivities']>[number];

/** Settings with which the first two polls use timers and `pollJob` then reads about once a second. */
export const POLL_EVERY_SECOND = {
  initial: '1s',
  growth: 0,
  maximum: '1s',
  jitter: 0,
  timerPolls: 2,
} as const;

/**
 * Settings with which the interval is ten times the turn's age. The first attempt of `pollJob` comes after 4 s, and the second
 * attempt comes 40 s later, so that nothing changes in the meantime.
 */
export const RARE_POLL_OPTIONS = {
  polling: { initial: '4s', growth: 10, maximum: '2m', jitter: 0, timerPolls: 0 },
  maxStaleness: '0s',
  deadline: '1h',
} as const;

/** Returns undefined if the follow-up has no pending `pollJob`. */
export async function findPendingPoll({ handle }: FollowUpUnderTest): Promise<PendingPoll | undefined> {
  const { raw } = await handle.describe();
  return raw.pendingActivities?.find(({ activityType }) => activityType?.name === 'pollJob');
}

/** Waits until the pending `pollJob` has reached an attempt. */
export async function waitForAttempt(following: FollowUpUnderTest, attempt: number): Promise<void> {
  const until = (pending: PendingPoll) => (pending.attempt ?? 0) >= attempt;
  await eventually(`the pending pollJob has reached attempt ${attempt}`, () => findPendingPoll(following), {
    until,
  });
}

/** Waits until the next attempt of `pollJob` is more than 20 s away, which requires the options {@link RARE_POLL_OPTIONS}. */
export async function waitForLongBackoff(following: FollowUpUnderTest): Promise<void> {
  const until = (pending: PendingPoll) => nextAttemptAtMs(pending) > Date.now() + 20_000;
  await eventually('the next attempt of pollJob is more than 20 s away', () => findPendingPoll(following), {
    until,
  });
}

/**
 * Returns the time of the next attempt, in milliseconds since the epoch on the Temporal server's clock, or 0 if the attempt is
 * due now.
 */
export function nextAttemptAtMs({ nextAttemptScheduleTime }: PendingPoll): number {
  const { seconds = 0, nanos = 0 } = nextAttemptScheduleTime ?? {};
  return Number(seconds) * 1_000 + Math.floor((nanos ?? 0) / 1_000_000);
}
