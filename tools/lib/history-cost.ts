import type { WorkflowHandle } from '@temporalio/client';

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
export type HistoryEvent = NonNullable<History['events']>[number];

/** The cost of one run. */
export interface HistoryCost {
  readonly events: number;
  /** The Temporal server's count when the last workflow task started, without the events that this task wrote. */
  readonly bytes: number;
  readonly workflowTasks: number;
  /**
   * The billable actions that the history shows (https://docs.temporal.io/evaluate/cloud/actions). Heartbeats and queries are
   * billed too, and add no event.
   */
  readonly actions: number;
}

/** Computes the cost of one run from its history. Assumes that the run was not reset, and that no schedule started it. */
export function computeCost(events: readonly HistoryEvent[]): HistoryCost {
  const sizes = events.map(({ workflowTaskStartedEventAttributes: task }) =>
    toNumber(task?.historySizeBytes),
  );
  return {
    events: events.length,
    bytes: Math.max(0, ...sizes),
    workflowTasks: events.filter((event) => event.workflowTaskStartedEventAttributes).length,
    actions: events.reduce((sum, event) => sum + countActions(event), 0) + tasksWithMarkers(events),
  };
}

/**
 * Most billed events are one action each. A retry of an activity has no event, but the event of the last attempt has the number of this
 * attempt.
 */
function countActions(event: HistoryEvent): number {
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
  return new Set(markers.map((marker) => toNumber(marker.workflowTaskCompletedEventId))).size;
}

/** An int64 is a `Long`, or a text in a recorded history. */
function toNumber(value: { toString(): string } | null | undefined): number {
  return value ? Number(value.toString()) : 0;
}
