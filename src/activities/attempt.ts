import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { NO_CHANGE } from '../core/names';

/** The run of the workflow that has scheduled the activity: all of ours have one. */
export function ownRun(): { readonly workflowId: string; readonly runId: string } {
  return Context.current().info.workflowExecution ?? { workflowId: '', runId: '' };
}

/** How long the attempt has lain in its queue, in milliseconds, as far as the clocks of server and worker agree. */
export function queuedMs(): number {
  return Math.max(0, Date.now() - Context.current().info.currentAttemptScheduledTimestampMs);
}

/**
 * The server's clock, as far as the attempt at hand can know it: the time now is what it returns, or later. Clocks of two
 * workers may differ by minutes, so it counts from the moment at which the server has scheduled the attempt, by the
 * process's monotonic clock. It is late by the time that the task has waited in its queue.
 */
export function serverClock(): () => number {
  const { currentAttemptScheduledTimestampMs } = Context.current().info;
  const begunAt = performance.now();
  return () => Math.round(currentAttemptScheduledTimestampMs + performance.now() - begunAt);
}

/** With this failure an activity asks for its next attempt; until then it takes no slot. The workflow gets the last details. */
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
