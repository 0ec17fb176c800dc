import { randomUUID } from 'node:crypto';
import type { Client, WorkflowHandle } from '@temporalio/client';
import { eventually } from './eventually';

/** To where a test resets a follow-up: to right before its first activity, or its first send. */
export type ResetPoint = 'start' | 'send';

/**
 * Resets a workflow as `temporal workflow reset` does: a new run takes the history up to that point and goes on from it.
 *
 * @returns the new run
 * @throws Error when the history has no such point
 */
export async function resetWorkflow(
  client: Client,
  workflowId: string,
  point: ResetPoint,
): Promise<WorkflowHandle> {
  const handle = client.workflow.getHandle(workflowId);
  const { runId } = await handle.describe();
  const activity = await eventually('the activity to reset to', async () => {
    const { events } = await handle.fetchHistory();
    const scheduled = (events ?? []).flatMap((event) => event.activityTaskScheduledEventAttributes ?? []);
    return scheduled.find(({ activityType }) => point === 'start' || activityType?.name === 'sendMessage');
  });
  const { runId: newRunId } = await client.workflowService.resetWorkflowExecution({
    namespace: client.options.namespace,
    workflowExecution: { workflowId, runId },
    // The task that scheduled the activity is taken back, and done again by the new run.
    workflowTaskFinishEventId: activity.workflowTaskCompletedEventId ?? null,
    requestId: randomUUID(),
    reason: 'a test',
  });
  return client.workflow.getHandle(workflowId, newRunId);
}
