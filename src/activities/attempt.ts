import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { NO_CHANGE } from '../core/names';

export function ownRun(): { readonly workflowId: string; readonly runId: string } {
  return Context.current().info.workflowExecution ?? { workflowId: '', runId: '' };
}

/** The server's clock, which may be slow by the attempt's wait in its queue: workers' clocks may differ by minutes. */
export function serverClock(): () => number {
  const { currentAttemptScheduledTimestampMs } = Context.current().info;
  const begunAt = performance.now();
  return () => Math.round(currentAttemptScheduledTimestampMs + performance.now() - begunAt);
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
