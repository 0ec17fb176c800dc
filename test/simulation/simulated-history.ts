import { temporal } from '@temporalio/proto';
import type { HistoryEvent as ServerEvent } from '../../tools/lib/history-cost';
import {
  activityFailure,
  type EventBody,
  fromPayload,
  type HistoryEvent,
  isActivityEnd,
  type Marker,
  toMs,
  type Payload,
  type Payloads,
  type Resolution,
  type RunStart,
  type Scheduled,
} from './temporal/history';

const { EventType, WorkflowTaskFailedCause } = temporal.api.enums.v1;

/** The data that the SDK's core writes into the marker of a local activity. */
interface MarkerData {
  readonly seq?: number;
  readonly complete_time?: Parameters<typeof toMs>[0];
}

type Packed = { readonly payloads?: Payload[] | null } | null | undefined;

type AllOf<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void
  ? Partial<All>
  : never;

/** The attributes of all types of events together. */
type Attributes = AllOf<NonNullable<ServerEvent[keyof ServerEvent & `${string}EventAttributes`]>>;

/**
 * Converts a history of a real Temporal server to a history of the simulation.
 *
 * @throws TypeError if the event of a failed or timed-out activity has no failure
 */
export function toSimulatedHistory(events: readonly ServerEvent[]): {
  readonly start: RunStart;
  readonly events: readonly HistoryEvent[];
} {
  const started = events[0]?.workflowExecutionStartedEventAttributes ?? {};
  const runId = started.originalExecutionRunId ?? '';
  const start: RunStart = {
    workflowId: started.workflowId ?? '',
    workflowType: started.workflowType?.name ?? '',
    taskQueue: started.taskQueue?.name ?? '',
    input: listOf(started.input),
    memo: started.memo?.fields ?? {},
    searchAttributes: started.searchAttributes?.indexedFields ?? {},
    runId,
    firstRunId: started.firstExecutionRunId ?? '',
    originalRunId: runId,
    ...(started.continuedExecutionRunId ? { continuedFromRunId: started.continuedExecutionRunId } : {}),
  };
  const byId = new Map(events.map((event) => [Number(event.eventId), attributesOf(event)]));
  const converted = events.map((event) => {
    const body = bodyOf(typeOf(event) as EventBody['type'], attributesOf(event), byId);
    return { ...body, id: Number(event.eventId), at: toMs(event.eventTime) };
  });
  return {
    start,
    events: converted.map((event, index) => resolveInNextTask(event, converted.slice(index + 1))),
  };
}

/** A local activity that ends after its workflow task is resolved when the next workflow task starts. */
function resolveInNextTask(event: HistoryEvent, later: readonly HistoryEvent[]): HistoryEvent {
  if (event.type !== 'MarkerRecorded') return event;
  const [next, started] = later.filter(({ type }) => type !== 'MarkerRecorded');
  if (next?.type !== 'WorkflowTaskScheduled' || started?.type !== 'WorkflowTaskStarted') return event;
  return { ...event, endedAt: started.at };
}

/** Returns the type of an event: `WorkflowExecutionStarted` for `EVENT_TYPE_WORKFLOW_EXECUTION_STARTED`. */
export function typeOf({ eventType }: ServerEvent): string {
  const words = EventType[eventType ?? 0]?.replace('EVENT_TYPE_', '').toLowerCase().split('_') ?? [];
  return words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
}

export function causeOf(cause: number | null | undefined): string {
  return (WorkflowTaskFailedCause[cause ?? 0] ?? '').replace('WORKFLOW_TASK_FAILED_CAUSE_', '');
}

/** Returns the attributes of an event, which are in the only property whose name ends with `EventAttributes`. */
function attributesOf(event: ServerEvent) {
  const [name = ''] = Object.keys(event).filter((each) => each.endsWith('EventAttributes'));
  return (event[name as keyof ServerEvent] ?? {}) as unknown as Attributes;
}

/** Converts an event. The result has the fields of all types of events, and a reader uses only the fields of the type. */
function bodyOf(type: EventBody['type'], its: Attributes, all: ReadonlyMap<number, Attributes>): EventBody {
  const seq = its.timerId ?? its.activityId ?? all.get(Number(its.scheduledEventId))?.activityId;
  const { acceptedRequest: update, activityType, taskQueue, cause, newRunId, failure } = its;
  const [result] = listOf(its.result);
  return {
    ...{ type, size: 0, ms: toMs(its.startToFireTimeout), memo: {}, cause: causeOf(cause) },
    ...{ historySize: Number(its.historySizeBytes ?? 0), suggestsNew: its.suggestContinueAsNew === true },
    fields: its.searchAttributes?.indexedFields ?? its.upsertedMemo?.fields ?? {},
    name: its.signalName ?? update?.input?.name ?? '',
    input: listOf(its.input ?? update?.input?.args),
    updateId: (its.meta ?? update?.meta)?.updateId ?? '',
    // The cancellation type is missing, because it is part of the workflow's command, but not of the history.
    activity: {
      ...(its as Scheduled),
      ...{ activityType: activityType?.name ?? '', taskQueue: taskQueue?.name ?? '' },
      arguments: [...listOf(its.input)],
    },
    ...(seq !== undefined && { seq: Number(seq) }),
    ...(newRunId && { seed: newRunId }),
    ...(result && { result }),
    ...(failure && { failure }),
    ...(type === 'MarkerRecorded' && markerOf(its)),
    ...(isActivityEnd({ type }) && { resolution: resolutionOf(type, its, all, result) }),
  } as unknown as EventBody;
}

function markerOf({ details, failure }: Attributes): Marker {
  const { seq = 0, complete_time } = (fromPayload(listOf(details?.data)[0]) ?? {}) as MarkerData;
  const [result = null] = listOf(details?.result);
  return {
    seq,
    endedAt: toMs(complete_time),
    resolution: failure ? { failed: { failure } } : { completed: { result } },
  };
}

function resolutionOf(
  type: EventBody['type'],
  { failure, scheduledEventId }: Attributes,
  all: ReadonlyMap<number, Attributes>,
  result: Payload | undefined,
): Resolution {
  if (type === 'ActivityTaskCompleted') return { completed: { result: result ?? null } };
  // A workflow that cancelled an activity does not read the details of the cancellation.
  if (type === 'ActivityTaskCanceled') return { cancelled: { failure: { canceledFailureInfo: {} } } };
  if (!failure) throw new TypeError(`the event ${type} has no failure`);
  const { activityId, activityType } = all.get(Number(scheduledEventId)) ?? {};
  const activity = { seq: Number(activityId), name: activityType?.name ?? '' };
  return { failed: { failure: activityFailure(activity, 'Activity task failed', failure) } };
}

function listOf(packed: Packed): Payloads {
  return packed?.payloads ?? [];
}
