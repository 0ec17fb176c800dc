import type { Client } from '@temporalio/client';
import { eventsOf } from './reset';

/**
 * With these causes, the Temporal server itself fails a workflow task, although no worker has failed. `UNHANDLED_COMMAND`: a
 * signal arrived while the workflow was being closed. `FORCE_CLOSE_COMMAND`: a hundred signals wait behind a task whose worker
 * was stopped. The list has numbers because the project does not depend on the package of the enum `WorkflowTaskFailedCause`.
 */
const EXPECTED_CAUSES = [1, 17];

/** Lists the failed workflow tasks, with their causes, of all workflows that a visibility query finds. */
export async function listFailedTasks({ workflow }: Client, query: string): Promise<string[]> {
  const failed: string[] = [];
  for await (const { workflowId, runId } of workflow.list({ query })) {
    const events = await eventsOf(workflow.getHandle(workflowId, runId));
    for (const { workflowTaskFailedEventAttributes: task } of events)
      if (task && !EXPECTED_CAUSES.includes(Number(task.cause)))
        failed.push(`${workflowId}: cause ${task.cause}, ${task.failure?.message ?? ''}`);
  }
  return failed;
}
