import { temporal } from '@temporalio/proto';
import type { HistoryEvent as ServerEvent } from '../../bench/history-cost';
import {
  type ActivityOptions,
  type EventBody,
  type Failure,
  type Fields,
  fromPayload,
  type HistoryEvent,
  type Payload,
  type Payloads,
  type Resolution,
} from './temporal/history';
import type { RunStart } from './temporal/run';

const { EventType, WorkflowTaskFailedCause } = temporal.api.enums.v1;

/** What the core writes in the marker of a local activity. */
interface MarkerData {
  readonly seq: number;
  readonly complete_time: { readonly seconds: number; readonly nanos: number };
}

/** Seconds are a `Long`, or what JSON makes of one. */
type Time = { readonly seconds?: unknown; readonly nanos?: number | null } | null | undefined;
/** Those of all kinds of events that are read here. */
type Attributes = Partial<
  Record<
    'scheduledEventId' | 'timerId' | 'activityId' | 'historySizeBytes' | 'suggestContinueAsNew',
    unknown
  > &
    Record<'newRunId' | 'signalName', string> &
    Record<'result' | 'input', Packed> &
    Record<'searchAttributes', { readonly indexedFields?: Fields }> &
    Record<'upsertedMemo', { readonly fields?: Fields }> & {
      readonly cause: number;
      readonly startToFireTimeout: Time;
      readonly details: Readonly<Record<string, Packed>>;
      readonly failure: Failure;
    } & Record<'acceptedRequest', temporal.api.update.v1.IRequest> &
    Record<'meta', temporal.api.update.v1.IMeta>
>;
type Packed = { readonly payloads?: Payload[] | null } | null | undefined;

/** A history of a real server, as the simulation has it. @throws TypeError if it has an event that the simulation does not know */
export function fromServer(events: readonly ServerEvent[]): {
  readonly start: RunStart;
  readonly events: readonly HistoryEvent[];
} {
  const started = events[0]?.workflowExecutionStartedEventAttributes ?? {};
  const runId = started.originalExecutionRunId ?? '';
  const scheduledBy = new Map(events.map((event) => [Number(event.eventId), event]));
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
  const converted = events.map((event) => ({
    ...bodyOf(event, scheduledBy),
    id: Number(event.eventId),
    at: msOf(event.eventTime),
  }));
  return { start, events: converted };
}

/** `WorkflowExecutionStarted` for `EVENT_TYPE_WORKFLOW_EXECUTION_STARTED`. */
export function typeOf({ eventType }: ServerEvent): string {
  const words = EventType[eventType ?? 0]?.replace('EVENT_TYPE_', '').toLowerCase().split('_') ?? [];
  return words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
}

/** The only attributes that an event has. */
function attributesOf(event: ServerEvent) {
  const [name = ''] = Object.keys(event).filter((each) => each.endsWith('EventAttributes'));
  return (event[name as keyof ServerEvent] ?? {}) as unknown as Attributes;
}

function bodyOf(event: ServerEvent, all: ReadonlyMap<number, ServerEvent>): EventBody {
  const type = typeOf(event) as EventBody['type'];
  const its = attributesOf(event);
  const scheduled = all.get(Number(its.scheduledEventId));
  const seq = Number(its.timerId ?? its.activityId ?? (scheduled && attributesOf(scheduled).activityId));
  switch (type) {
    case 'WorkflowExecutionStarted':
      return { type, size: 0 };
    case 'WorkflowTaskScheduled':
    case 'WorkflowTaskCompleted':
    case 'WorkflowTaskTimedOut':
    case 'WorkflowExecutionCancelRequested':
      return { type };
    case 'WorkflowTaskStarted':
      return {
        type,
        historySize: Number(its.historySizeBytes ?? 0),
        suggestsContinueAsNew: its.suggestContinueAsNew === true,
      };
    case 'WorkflowTaskFailed': {
      const { newRunId } = its;
      const cause = (WorkflowTaskFailedCause[its.cause ?? 0] ?? '').replace(
        'WORKFLOW_TASK_FAILED_CAUSE_',
        '',
      );
      return { type, cause, ...(newRunId ? { seed: newRunId } : {}) };
    }
    case 'TimerStarted':
      return { type, seq, ms: msOf(its.startToFireTimeout) };
    case 'TimerFired':
    case 'TimerCanceled':
    case 'ActivityTaskStarted':
    case 'ActivityTaskCancelRequested':
      return { type, seq };
    case 'ActivityTaskScheduled':
      return { type, seq, activity: activityOf(event) };
    case 'ActivityTaskCompleted':
      return { type, seq, resolution: { completed: { result: listOf(its.result)[0] ?? null } } };
    case 'ActivityTaskCanceled': {
      // The only ends that are recorded beside results: a workflow that has cancelled no longer reads how.
      const failure = { message: 'Activity cancelled', canceledFailureInfo: {} };
      return { type, seq, resolution: { cancelled: { failure } } };
    }
    case 'MarkerRecorded': {
      const { details, failure } = its;
      const data = fromPayload(listOf(details?.data)[0]) as MarkerData | undefined;
      const { seconds = 0, nanos = 0 } = data?.complete_time ?? {};
      const resolution: Resolution = failure
        ? { failed: { failure } }
        : { completed: { result: listOf(details?.result)[0] ?? null } };
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
    case 'WorkflowExecutionCompleted':
    case 'WorkflowExecutionFailed':
    case 'WorkflowExecutionCanceled':
    case 'WorkflowExecutionContinuedAsNew': {
      const [result] = listOf(its.result);
      return { type, ...(result && { result }), ...(its.failure && { failure: its.failure }) };
    }
    default:
      throw new TypeError(`the simulation does not know the event ${type}`);
  }
}

function activityOf(event: ServerEvent): ActivityOptions {
  const scheduled = event.activityTaskScheduledEventAttributes ?? {};
  const { retryPolicy } = scheduled;
  return {
    name: scheduled.activityType?.name ?? '',
    taskQueue: scheduled.taskQueue?.name ?? '',
    input: listOf(scheduled.input),
    scheduleToStartMs: msOf(scheduled.scheduleToStartTimeout),
    startToCloseMs: msOf(scheduled.startToCloseTimeout),
    scheduleToCloseMs: msOf(scheduled.scheduleToCloseTimeout),
    heartbeatMs: msOf(scheduled.heartbeatTimeout),
    retry: {
      initialMs: msOf(retryPolicy?.initialInterval),
      coefficient: retryPolicy?.backoffCoefficient ?? 2,
      maximumMs: msOf(retryPolicy?.maximumInterval),
      attempts: retryPolicy?.maximumAttempts ?? 0,
    },
    // It stands in no history; only the command of a workflow has it.
    cancellation: 'try',
  };
}

function msOf(time: Time): number {
  return Number(time?.seconds ?? 0) * 1_000 + Math.floor((time?.nanos ?? 0) / 1e6);
}

function listOf(packed: Packed): Payloads {
  return packed?.payloads ?? [];
}
