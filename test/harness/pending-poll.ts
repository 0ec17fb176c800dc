import type { WorkflowExecutionDescription } from '@temporalio/client';
import type { Sandbox } from '../../sandbox';
import { eventually } from './eventually';
import type { Following } from './following';

/** What is pending on the server of a read that polls by its own retries. */
type PendingRead = NonNullable<WorkflowExecutionDescription['raw']['pendingActivities']>[number];

/** Two reads by timers, and then one a second by an activity's retries (shorter intervals come as about a second). */
export const SOON = { initial: '1s', growth: 0, maximum: '1s', jitter: 0, timerPolls: 2 } as const;

/** Undefined where the follow-up has no such activity pending. */
export async function pendingRead({ handle }: Following): Promise<PendingRead | undefined> {
  const { raw } = await handle.describe();
  return raw.pendingActivities?.find(({ activityType }) => activityType?.name === 'pollJob');
}

/** Waits until the patient read has come to its attempt of that number. */
export async function untilAttempt(following: Following, attempt: number): Promise<void> {
  const until = (pending: PendingRead) => (pending.attempt ?? 0) >= attempt;
  await eventually(`attempt ${attempt} of the pending poll`, () => pendingRead(following), { until });
}

/**
 * Has a patient read wait for two minutes, so that nothing moves in the meantime: the service asks for it by a 429. The
 * deadline must be further away, or the wait ends the activity at once.
 */
export async function untilItWaits(sandbox: Sandbox, following: Following): Promise<void> {
  await untilAttempt(following, 2);
  const parameters = { retryAfter: '120' };
  sandbox.setFault({ name: 'http-429', ...following.key, operation: 'get', times: 1, parameters });
  const until = (pending: PendingRead) => dueAt(pending) > Date.now() + 60_000;
  await eventually('the pending poll waits', () => pendingRead(following), { until });
}

/** When its next attempt is due by the server's clock, in milliseconds since the epoch; 0 where one is due now. */
export function dueAt({ nextAttemptScheduleTime }: PendingRead): number {
  const { seconds = 0, nanos = 0 } = nextAttemptScheduleTime ?? {};
  return Number(seconds) * 1_000 + Math.floor((nanos ?? 0) / 1_000_000);
}
