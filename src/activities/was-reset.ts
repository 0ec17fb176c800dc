import { Context } from '@temporalio/activity';

/**
 * The local activity `wasReset`. A workflow can't decide this by its own run id: a reset replays the history that the first
 * run recorded, in which the answer was no. A local activity's answer is recorded.
 */
export function wasReset(firstExecutionRunId: string): Promise<boolean> {
  return Promise.resolve(Context.current().info.workflowExecution?.runId !== firstExecutionRunId);
}
