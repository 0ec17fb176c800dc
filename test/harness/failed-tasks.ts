import type { Client } from '@temporalio/client';

/**
 * `WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND`: a signal came while a worker was closing the workflow, so the server has
 * it look once more. That is no failure of a worker. The enum's package is no dependency of ours.
 */
const UNHANDLED_COMMAND = 1;

/** The failed workflow tasks of all workflows that a query of the visibility finds, with their causes. */
export async function failedTasks({ workflow }: Client, query: string) {
  let workflows = 0;
  const failed: string[] = [];
  for await (const { workflowId, runId } of workflow.list({ query })) {
    const { events } = await workflow.getHandle(workflowId, runId).fetchHistory();
    for (const { workflowTaskFailedEventAttributes: task } of events ?? []) {
      if (task && Number(task.cause) !== UNHANDLED_COMMAND)
        failed.push(`${workflowId}: cause ${task.cause}, ${task.failure?.message ?? ''}`);
    }
    workflows += 1;
  }
  return { workflows, failed };
}
