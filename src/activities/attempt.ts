import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { POLL_AGAIN } from '../contract/names';

export function currentRun(): { readonly workflowId: string; readonly runId: string } {
  return Context.current().info.workflowExecution ?? { workflowId: '', runId: '' };
}

/**
 * Returns a clock that is based on the Temporal server's time, because workers' clocks may differ by minutes. The clock is behind by
 * as long as the attempt waited in its task queue.
 */
export function serverClock(): () => number {
  const { currentAttemptScheduledTimestampMs } = Context.current().info;
  const startedAt = performance.now();
  return () => Math.round(currentAttemptScheduledTimestampMs + performance.now() - startedAt);
}

/**
 * Returns a function that returns the milliseconds since this call. The wall clock also advances while the machine is suspended.
 * The monotonic clock also advances if the wall clock is set back. The longer time counts.
 */
export function startTimer(): () => number {
  const [startedAt, startedTick] = [Date.now(), performance.now()];
  return () => Math.max(Date.now() - startedAt, performance.now() - startedTick);
}

/**
 * Creates the failure with which an activity requests its next attempt after `waitMs`. The waiting activity takes no slot of a
 * worker.
 */
export function pollAgainError(waitMs: number, message: string, ...details: unknown[]): ApplicationFailure {
  return ApplicationFailure.create({
    type: POLL_AGAIN,
    message,
    nonRetryable: false,
    category: ApplicationFailureCategory.BENIGN,
    nextRetryDelay: waitMs,
    details,
  });
}
