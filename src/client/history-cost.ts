import type { History } from '@temporalio/common/lib/proto-utils';

export type HistoryEvent = NonNullable<History['events']>[number];

/**
 * What Temporal Cloud bills as an action, by kind, and how many of each a history shows.
 *
 * The rules are Temporal's, "Temporal Cloud Actions" (https://docs.temporal.io/evaluate/cloud/actions), which names
 * the history event of each. A server of one's own bills nothing; the same operations are what loads it.
 */
export interface BillableActions {
  /** Runs started: by a client, by continue-as-new (there it is billed as this), as a child. */
  readonly starts: number;
  /** Two beside the start of a run that a schedule started. */
  readonly schedules: number;
  readonly resets: number;
  /** Each `sleep`, and each `condition` with a time limit. */
  readonly timers: number;
  /** The first attempt of each activity, when it is scheduled. */
  readonly activities: number;
  /** The further attempts: no event is written of each, but the last one tells its number. */
  readonly activityRetries: number;
  /** All local activities, and other markers, of one workflow task are one action. */
  readonly localActivities: number;
  readonly localActivityRetries: number;
  /** Each command, however many attributes it sets; the one that only notes a workflow's version is free. */
  readonly searchAttributeUpserts: number;
  readonly signals: number;
  /** Those that were accepted; a refused one is billed too and leaves no event. */
  readonly updates: number;
  /** Changes of a run's options, such as a second start that attaches a callback. */
  readonly optionUpdates: number;
}

/** What the history of one run has cost. */
export interface HistoryCost {
  readonly events: number;
  /** As the server counted when the last workflow task began: what that task itself has written is not in it. */
  readonly bytes: number;
  readonly workflowTasks: number;
  readonly actions: BillableActions;
}

/** Billed, and in no history: whoever adds up a bill has to add these. */
export const NOT_IN_HISTORY: readonly string[] = [
  'queries, as by status and watch (not those for the current details in the Web UI)',
  'heartbeats that reach the server: one of each send, one every 24 s while an activity polls in its process (a poll that is a retry has none), one after 5 s of a slow read and one every 12 s from then on',
  'updates that were refused',
  'retries of an activity that was cancelled, or whose workflow was terminated, between two attempts',
  'a tenth of all actions, where the namespace has fairness enabled',
];

const NO_ACTIONS: BillableActions = {
  starts: 0,
  schedules: 0,
  resets: 0,
  timers: 0,
  activities: 0,
  activityRetries: 0,
  localActivities: 0,
  localActivityRetries: 0,
  searchAttributeUpserts: 0,
  signals: 0,
  updates: 0,
  optionUpdates: 0,
};

/** The two actions of a schedule at each start of a workflow, beside the start itself. */
const ACTIONS_OF_SCHEDULE = 2;

/** Retries of local activities are billed to no more than this, for each workflow task. */
const MAX_LOCAL_RETRIES = 100;

/** The attribute in which the server keeps a workflow's version: to set it is free. */
const VERSION_ATTRIBUTE = 'TemporalChangeVersion';

/** The attribute by which a run knows the schedule that started it. */
const SCHEDULE_ATTRIBUTE = 'TemporalScheduledById';

/**
 * What one run has cost, by its history.
 *
 * A run made by a reset begins with a copy of another run's events: they are stored twice, but were done and billed
 * once, there.
 */
export function costOf(events: readonly HistoryEvent[]): HistoryCost {
  const done = events.slice(Math.max(0, events.findLastIndex(isReset)));
  return {
    events: events.length,
    bytes: Math.max(
      0,
      ...events.map(({ workflowTaskStartedEventAttributes: task }) => numberOf(task?.historySizeBytes)),
    ),
    workflowTasks: done.filter((event) => event.workflowTaskStartedEventAttributes).length,
    actions: { ...sumActions(done.map(actionsOf)), localActivities: tasksWithMarkers(done) },
  };
}

/** The event with which a run made by a reset goes on from what it has copied. */
export function isReset({ workflowTaskFailedEventAttributes: failed }: HistoryEvent): boolean {
  return Boolean(failed?.baseRunId);
}

export function sumActions(all: readonly Partial<BillableActions>[]): BillableActions {
  const sum: Record<keyof BillableActions, number> = { ...NO_ACTIONS };
  for (const actions of all) {
    for (const kind of Object.keys(sum) as (keyof BillableActions)[]) sum[kind] += actions[kind] ?? 0;
  }
  return sum;
}

export function totalOf(actions: BillableActions): number {
  return (Object.values(actions) as number[]).reduce((sum, count) => sum + count, 0);
}

function actionsOf(event: HistoryEvent): Partial<BillableActions> {
  const started = event.workflowExecutionStartedEventAttributes;
  if (started) {
    const scheduled = Object.hasOwn(started.searchAttributes?.indexedFields ?? {}, SCHEDULE_ATTRIBUTE);
    return { starts: 1, schedules: scheduled ? ACTIONS_OF_SCHEDULE : 0 };
  }
  if (isReset(event)) return { resets: 1 };
  if (event.timerStartedEventAttributes) return { timers: 1 };
  if (event.activityTaskScheduledEventAttributes) return { activities: 1 };
  if (event.activityTaskStartedEventAttributes) {
    return { activityRetries: Math.max(0, (event.activityTaskStartedEventAttributes.attempt ?? 1) - 1) };
  }
  const metered = event.workflowTaskCompletedEventAttributes?.meteringMetadata;
  if (metered) {
    const retries = metered.nonfirstLocalActivityExecutionAttempts ?? 0;
    return { localActivityRetries: Math.min(retries, MAX_LOCAL_RETRIES) };
  }
  const upsert = event.upsertWorkflowSearchAttributesEventAttributes;
  if (upsert) {
    const names = Object.keys(upsert.searchAttributes?.indexedFields ?? {});
    return { searchAttributeUpserts: names.length === 1 && names[0] === VERSION_ATTRIBUTE ? 0 : 1 };
  }
  if (event.workflowExecutionSignaledEventAttributes) return { signals: 1 };
  if (event.workflowExecutionUpdateAcceptedEventAttributes) return { updates: 1 };
  if (event.workflowExecutionOptionsUpdatedEventAttributes) return { optionUpdates: 1 };
  return {};
}

function tasksWithMarkers(events: readonly HistoryEvent[]): number {
  const markers = events.flatMap(({ markerRecordedEventAttributes: marker }) => marker ?? []);
  return new Set(markers.map((marker) => numberOf(marker.workflowTaskCompletedEventId))).size;
}

/** An int64 of the wire: a `Long`, or a text in a recorded history. */
function numberOf(value: { toString(): string } | null | undefined): number {
  return value ? Number(value.toString()) : 0;
}
