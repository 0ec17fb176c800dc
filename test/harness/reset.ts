import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import type { temporal } from '@temporalio/proto';

export type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

export async function eventsOf(handle: WorkflowHandle): Promise<HistoryEvent[]> {
  return (await handle.fetchHistory()).events ?? [];
}

/** Returns the completion events of the latest run's workflow tasks. A reset can name each of these events. */
export async function workflowTasks({ client, workflowId }: WorkflowHandle): Promise<HistoryEvent[]> {
  const events = await eventsOf(client.getHandle(workflowId));
  return events.filter((event) => event.workflowTaskCompletedEventAttributes);
}

/** Resets the latest run to the point before a workflow task. @param task the task's completion event @returns the new run */
export async function resetToTask(
  { client, workflowId }: WorkflowHandle,
  task: Pick<HistoryEvent, 'eventId'> | undefined,
): Promise<WorkflowHandle> {
  const { runId } = await client.getHandle(workflowId).describe();
  const { runId: newRunId } = await client.workflowService.resetWorkflowExecution({
    namespace: client.options.namespace,
    workflowExecution: { workflowId, runId },
    workflowTaskFinishEventId: task?.eventId ?? null,
    requestId: randomUUID(),
    reason: 'a test',
  });
  return client.getHandle(workflowId, newRunId);
}
