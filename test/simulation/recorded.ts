import { temporal } from '@temporalio/proto';
import type { HistoryEvent as ServerEvent } from '../../bench/history-cost';
import {
  type EventBody,
  fromPayload,
  type HistoryEvent,
  msOf,
  type Payload,
  type Payloads,
  type Resolution,
  type RunStart,
  type Scheduled,
} from './temporal/history';

const { EventType, WorkflowTaskFailedCause } = temporal.api.enums.v1;

/** What the core writes in the marker of a local activity. */
interface MarkerData {
  readonly seq: number;
  readonly complete_time: { readonly seconds: number; readonly nanos: number };
}

type Packed = { readonly payloads?: Payload[] | null } | null | undefined;

type AllOf<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void
  ? Partial<All>
  : never;

/** Those of all kinds of events. */
type Attributes = AllOf<NonNullable<ServerEvent[keyof ServerEvent & `${string}EventAttributes`]>>;

/** A history of a real server, as the simulation has it. @throws TypeError if it has an event that the simulation does not know */
export function fromServer(events: readonly ServerEvent[]): {
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
    return { ...body, id: Number(event.eventId), at: msOf(event.eventTime) };
  });
  return { start, events: converted };
}

/** `WorkflowExecutionStarted` for `EVENT_TYPE_WORKFLOW_EXECUTION_STARTED`. */
export function typeOf({ eventType }: ServerEvent): string {
  const words = EventType[eventType ?? 0]?.replace('EVENT_TYPE_', '').toLowerCase().split('_') ?? [];
  return words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
}

export function causeOf(cause: number | null | undefined): string {
  return (WorkflowTaskFailedCause[cause ?? 0] ?? '').replace('WORKFLOW_TASK_FAILED_CAUSE_', '');
}

/** The only attributes that an event has. */
function attributesOf(event: ServerEvent) {
  const [name = ''] = Object.keys(event).filter((each) => each.endsWith('EventAttributes'));
  return (event[name as keyof ServerEvent] ?? {}) as unknown as Attributes;
}

function bodyOf(type: EventBody['type'], its: Attributes, all: ReadonlyMap<number, Attributes>): EventBody {
  const seq = Number(its.timerId ?? its.activityId ?? all.get(Number(its.scheduledEventId))?.activityId);
  switch (type) {
    case 'WorkflowExecutionStarted':
      return { type, size: 0 };
    case 'WorkflowTaskScheduled':
    case 'WorkflowTaskCompleted':
    case 'WorkflowTaskTimedOut':
    case 'WorkflowExecutionCancelRequested':
      return { type };
    case 'WorkflowTaskStarted': {
      const { historySizeBytes, suggestContinueAsNew: suggestsNew } = its;
      return { type, historySize: Number(historySizeBytes ?? 0), suggestsNew: suggestsNew === true };
    }
    case 'WorkflowTaskFailed': {
      const { cause, newRunId: seed } = its;
      return { type, cause: causeOf(cause), ...(seed && { seed }) };
    }
    case 'TimerStarted':
      return { type, seq, ms: msOf(its.startToFireTimeout) };
    case 'TimerFired':
    case 'TimerCanceled':
    case 'ActivityTaskStarted':
    case 'ActivityTaskCancelRequested':
      return { type, seq };
    case 'ActivityTaskScheduled': {
      // How it is cancelled stands in no history; only the command of a workflow has it.
      const { activityType, taskQueue, input, ...options } = its;
      const named = { activityType: activityType?.name ?? '', taskQueue: taskQueue?.name ?? '' };
      return { type, seq, activity: { ...(options as Scheduled), ...named, arguments: [...listOf(input)] } };
    }
    case 'MarkerRecorded': {
      const { details, failure } = its;
      const data = fromPayload(listOf(details?.data)[0]) as MarkerData | undefined;
      const { seconds = 0, nanos = 0 } = data?.complete_time ?? {};
      const result = listOf(details?.result)[0] ?? null;
      const resolution: Resolution = failure ? { failed: { failure } } : { completed: { result } };
      const endedAt = seconds * 1_000 + Math.floor(nanos / 1e6);
      return { type, seq: data?.seq ?? 0, endedAt, resolution };
    }
    case 'UpsertWorkflowSearchAttributes':
      return { type, fields: its.searchAttributes?.indexedFields ?? {} };
    case 'WorkflowPropertiesModified':
      return { type, fields: its.upsertedMemo?.fields ?? {} };
    case 'WorkflowExecutionSignaled':
      return { type, name: its.signalName ?? '', input: listOf(its.input) };
    case 'WorkflowExecutionUpdateAccepted': {
      const { meta, input } = its.acceptedRequest ?? {};
      return { type, updateId: meta?.updateId ?? '', name: input?.name ?? '', input: listOf(input?.args) };
    }
    case 'WorkflowExecutionUpdateCompleted':
      return { type, updateId: its.meta?.updateId ?? '' };
    case 'WorkflowExecutionContinuedAsNew':
      return { type, input: listOf(its.input), memo: {} };
    case 'WorkflowExecutionCompleted':
    case 'WorkflowExecutionFailed':
    case 'WorkflowExecutionCanceled': {
      const [result] = listOf(its.result);
      return { type, ...(result && { result }), ...(its.failure && { failure: its.failure }) };
    }
    // The only ends of activities that are recorded beside results: a workflow that has cancelled no longer reads how.
    case 'ActivityTaskCanceled':
      return { type, seq, resolution: { cancelled: { failure: { canceledFailureInfo: {} } } } };
    case 'ActivityTaskCompleted':
      return { type, seq, resolution: { completed: { result: listOf(its.result)[0] ?? null } } };
    default:
      throw new TypeError(`the simulation does not know the event ${type}`);
  }
}

function listOf(packed: Packed): Payloads {
  return packed?.payloads ?? [];
}
