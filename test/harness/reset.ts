import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import type { temporal } from '@temporalio/proto';

export type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

export async function eventsOf(handle: WorkflowHandle): Promise<HistoryEvent[]> {
  return (await handle.fetchHistory()).events ?? [];
}

/** The completions of workflow tasks in the latest run: the points to which it can be reset. */
export async function workflowTasks({ client, workflowId }: WorkflowHandle): Promise<HistoryEvent[]> {
  const events = await eventsOf(client.getHandle(workflowId));
  return events.filter((event) => event.workflowTaskCompletedEventAttributes);
}

/** Resets the latest run to before a workflow task, which is given by its completion. @returns the new run */
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
