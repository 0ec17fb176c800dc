import type { WorkflowHandle } from '@temporalio/client';

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
export type HistoryEvent = NonNullable<History['events']>[number];

/** What the history of one run has cost. */
export interface HistoryCost {
  readonly events: number;
  /** As the server counted when the last workflow task began: what that task itself has written is not in it. */
  readonly bytes: number;
  readonly workflowTasks: number;
  /**
   * What Temporal Cloud bills, as far as history shows it (https://docs.temporal.io/evaluate/cloud/actions). Heartbeats and
   * queries are billed too, and leave no event.
   */
  readonly actions: number;
}

/** What one run has cost, by its history; a run that was not reset, and that no schedule has started. */
export function costOf(events: readonly HistoryEvent[]): HistoryCost {
  const sizes = events.map(({ workflowTaskStartedEventAttributes: task }) =>
    numberOf(task?.historySizeBytes),
  );
  return {
    events: events.length,
    bytes: Math.max(0, ...sizes),
    workflowTasks: events.filter((event) => event.workflowTaskStartedEventAttributes).length,
    actions: events.reduce((sum, event) => sum + actionsOf(event), 0) + tasksWithMarkers(events),
  };
}

/** The events that are one action each; a retry of an activity has no event, but the last attempt tells its number. */
function actionsOf(event: HistoryEvent): number {
  const { activityTaskStartedEventAttributes: attempt } = event;
  if (attempt) return Math.max(0, (attempt.attempt ?? 1) - 1);
  const billed =
    event.workflowExecutionStartedEventAttributes ??
    event.timerStartedEventAttributes ??
    event.activityTaskScheduledEventAttributes ??
    event.upsertWorkflowSearchAttributesEventAttributes ??
    event.workflowExecutionSignaledEventAttributes ??
    event.workflowExecutionUpdateAcceptedEventAttributes;
  return billed ? 1 : 0;
}

/** All local activities of one workflow task are one action. */
function tasksWithMarkers(events: readonly HistoryEvent[]): number {
  const markers = events.flatMap(({ markerRecordedEventAttributes: marker }) => marker ?? []);
  return new Set(markers.map((marker) => numberOf(marker.workflowTaskCompletedEventId))).size;
}

/** An int64 of the wire: a `Long`, or a text in a recorded history. */
function numberOf(value: { toString(): string } | null | undefined): number {
  return value ? Number(value.toString()) : 0;
}
