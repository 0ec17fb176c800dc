import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { POLL_AGAIN } from '../contract/names';

export function currentRun(): { readonly workflowId: string; readonly runId: string } {
  return Context.current().info.workflowExecution ?? { workflowId: '', runId: '' };
}

/**
 * The Temporal server's clock, which may be slow by the time that the attempt waited in its queue. Workers' clocks may differ by
 * minutes.
 */
export function serverClock(): () => number {
  const { currentAttemptScheduledTimestampMs } = Context.current().info;
  const startedAt = performance.now();
  return () => Math.round(currentAttemptScheduledTimestampMs + performance.now() - startedAt);
}

/** The failure with which an activity requests its next attempt; until then, the activity takes no slot. */
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
