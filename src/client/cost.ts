import {
  type Client,
  type WorkflowExecutionDescription,
  type WorkflowHandle,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { hasGrpcStatus } from '../temporal/grpc-status';
import { describeFollowUp } from './description';
import type { RunState } from '../temporal/existing-run';
import { readProgress } from './progress';
import { awaitResult, FollowUpCancelledError, FollowUpEndError, FollowUpFailedError } from './result';

/** What a follow-up has cost so far, all its runs together. */
export interface FollowUpCost {
  readonly workflowId: string;
  readonly state: RunState;
  /** More than one where it was continued as new or reset. */
  readonly runs: number;
  /** Runs before these are gone, as runs are when the namespace's retention has passed: their cost is not in here. */
  readonly earlierRunsGone: boolean;
  readonly events: number;
  /** The size of the history by the server's own count. */
  readonly bytes: number;
  readonly workflowTasks: number;
  /** Reads since the send; null where neither a receipt nor a worker tells. */
  readonly polls: number | null;
  /** Billable actions; those that no history shows are not among them, see `NOT_IN_HISTORY`. */
  readonly actions: BillableActions;
}

/** `PENDING_ACTIVITY_STATE_SCHEDULED` of Temporal's API: its attempt waits to begin, in a queue or in its back-off. */
const NOT_BEGUN = 1;

/**
 * Adds up what a follow-up has cost, from the first of its runs on.
 *
 * @throws NotFoundError
 */
export async function readCost(client: Client, workflowId: string): Promise<FollowUpCost> {
  const { state, runId } = await describeFollowUp(client, workflowId);
  const runs: RunCost[] = [];
  let before: string | undefined = runId;
  // From the last run back, since each run names the one before it.
  while (before !== undefined) {
    const run = await readRun(client, workflowId, before);
    if (run === undefined) break;
    runs.push(run);
    before = run.runBefore;
  }
  const sum = (pick: (run: RunCost) => number): number => runs.reduce((total, run) => total + pick(run), 0);
  return {
    workflowId,
    state,
    runs: runs.length,
    earlierRunsGone: before !== undefined,
    events: sum(({ events }) => events),
    bytes: sum(({ bytes }) => bytes),
    workflowTasks: sum(({ workflowTasks }) => workflowTasks),
    polls: await pollsOf(client, workflowId, state),
    actions: sumActions(runs.map(({ actions }) => actions)),
  };
}

interface RunCost {
  readonly events: number;
  readonly bytes: number;
  readonly workflowTasks: number;
  readonly actions: BillableActions;
  readonly runBefore: string | undefined;
}

/** Undefined where the run is gone. */
async function readRun(client: Client, workflowId: string, runId: string): Promise<RunCost | undefined> {
  const handle = client.workflow.getHandle(workflowId, runId);
  try {
    const { events } = await handle.fetchHistory();
    const description = await handle.describe();
    const cost = costOf(events ?? []);
    return {
      ...cost,
      bytes: description.historySize ?? cost.bytes,
      actions: sumActions([cost.actions, { activityRetries: pendingRetries(description) }]),
      runBefore: runBefore(events ?? []),
    };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError || hasGrpcStatus(error, 'NOT_FOUND')) return undefined;
    throw error;
  }
}

/** The run that this one continues, or was reset from. */
function runBefore(events: readonly HistoryEvent[]): string | undefined {
  const base = events.findLast(isReset)?.workflowTaskFailedEventAttributes?.baseRunId;
  const continued = events[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId;
  const runId = base ?? continued ?? '';
  return runId === '' ? undefined : runId;
}

/** The retries of activities that have not ended: history shows them only at the end. */
function pendingRetries({ raw }: WorkflowExecutionDescription): number {
  return (raw.pendingActivities ?? []).reduce((sum, { attempt, state }) => {
    const begun = (attempt ?? 1) - ((state as number) === NOT_BEGUN ? 1 : 0);
    return sum + Math.max(0, begun - 1);
  }, 0);
}

async function pollsOf(client: Client, workflowId: string, state: RunState): Promise<number | null> {
  if (state === 'running') {
    const report = await readProgress(client, workflowId);
    return report.from === 'worker' ? report.progress.polls : null;
  }
  try {
    return (await awaitResult(client, workflowId)).followUp.polls;
  } catch (error) {
    if (error instanceof FollowUpFailedError) return error.details.followUp.polls;
    if (error instanceof FollowUpCancelledError) return error.receipt?.polls ?? null;
    if (error instanceof FollowUpEndError) return null;
    throw error;
  }
}

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
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
interface HistoryCost {
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
function isReset({ workflowTaskFailedEventAttributes: failed }: HistoryEvent): boolean {
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
