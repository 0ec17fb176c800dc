import { randomUUID } from 'node:crypto';
import type { Client, WorkflowHandle } from '@temporalio/client';
import { eventually } from './eventually';

type ResetRequest = Parameters<Client['workflowService']['resetWorkflowExecution']>[0];
/** A number of 64 bits, as a history has it. */
export type EventId = NonNullable<ResetRequest['workflowTaskFinishEventId']>;

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
  const task = await eventually('the activity to reset to', async () => {
    const { events } = await handle.fetchHistory();
    const scheduled = (events ?? []).flatMap((event) => event.activityTaskScheduledEventAttributes ?? []);
    return scheduled.find(({ activityType }) => point === 'start' || activityType?.name === 'sendMessage')
      ?.workflowTaskCompletedEventId;
  });
  // The task that scheduled the activity is taken back, and done again by the new run.
  return client.workflow.getHandle(workflowId, await resetToEvent(client, workflowId, task));
}

/**
 * Resets the latest run to before a workflow task.
 *
 * @param eventId the completion of that task
 * @returns the id of the new run
 */
export async function resetToEvent(
  client: Client,
  workflowId: string,
  eventId: EventId | null,
): Promise<string> {
  const { runId } = await client.workflow.getHandle(workflowId).describe();
  const { runId: newRunId } = await client.workflowService.resetWorkflowExecution({
    namespace: client.options.namespace,
    workflowExecution: { workflowId, runId },
    workflowTaskFinishEventId: eventId,
    requestId: randomUUID(),
    reason: 'a test',
  });
  return newRunId;
}
