import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { SEND_PERMISSION_MS } from '../core/cadence';
import { NO_CHANGE } from '../core/names';
import { contextOf } from '../temporal/sdk-internals';

export function ownRun(): { readonly workflowId: string; readonly runId: string } {
  return Context.current().info.workflowExecution ?? { workflowId: '', runId: '' };
}

/** How long the attempt has lain in its queue, as far as the clocks of server and worker agree. */
export function queuedMs(): number {
  return Math.max(0, Date.now() - Context.current().info.currentAttemptScheduledTimestampMs);
}

/**
 * The server's clock: the time now is what it returns, or later by the attempt's wait in its queue. Clocks of two workers may
 * differ by minutes, so it counts by the monotonic clock from when the server has scheduled the attempt.
 */
export function serverClock(): () => number {
  const { currentAttemptScheduledTimestampMs } = Context.current().info;
  const begunAt = performance.now();
  return () => Math.round(currentAttemptScheduledTimestampMs + performance.now() - begunAt);
}

/**
 * Asks the server whether it still waits for this attempt, right before what must not happen twice: a process that was frozen
 * may wake after the server has given the attempt up.
 *
 * @param details what the next attempt must know: without them, nothing was begun
 * @returns the milliseconds for which the permission still holds
 * @throws what the server says: cancelled, paused, reset, given up; or the error of a call without an answer
 */
export async function askPermission(details: unknown): Promise<() => number> {
  const { info, client } = Context.current();
  const askedAt = Date.now();
  const askedTick = performance.now();
  await client.activity.heartbeat(info.taskToken, details, { serializationContext: contextOf(info) });
  // The wall clock shows a suspended machine, the monotonic one a wall clock that was set back.
  return () => SEND_PERMISSION_MS - Math.max(Date.now() - askedAt, performance.now() - askedTick);
}

/** With this failure an activity asks for its next attempt; until then it takes no slot. */
export function askAgainIn(waitMs: number, message: string, ...details: unknown[]): ApplicationFailure {
  return ApplicationFailure.create({
    type: NO_CHANGE,
    message,
    nonRetryable: false,
    category: ApplicationFailureCategory.BENIGN,
    nextRetryDelay: waitMs,
    details,
  });
}
