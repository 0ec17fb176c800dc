import type { Client } from '@temporalio/client';
import { eventsOf } from './reset';

/**
 * With these the server itself takes a task back, and no worker has failed: `UNHANDLED_COMMAND`, because a signal came while the
 * workflow was being closed; `FORCE_CLOSE_COMMAND`, because a hundred signals wait behind a task whose worker was stopped. The
 * enum's package (`WorkflowTaskFailedCause`) is no dependency of ours.
 */
const TAKEN_BACK = [1, 17];

/** The failed workflow tasks of all workflows that a query of the visibility finds, with their causes. */
export async function listFailedTasks({ workflow }: Client, query: string): Promise<string[]> {
  const failed: string[] = [];
  for await (const { workflowId, runId } of workflow.list({ query })) {
    const events = await eventsOf(workflow.getHandle(workflowId, runId));
    for (const { workflowTaskFailedEventAttributes: task } of events)
      if (task && !TAKEN_BACK.includes(Number(task.cause)))
        failed.push(`${workflowId}: cause ${task.cause}, ${task.failure?.message ?? ''}`);
  }
  return failed;
}
