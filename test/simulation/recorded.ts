import { temporal } from '@temporalio/proto';
import type { HistoryEvent as ServerEvent } from '../../bench/history-cost';
import {
  type ActivityOptions,
  type Closing,
  type EventBody,
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

function bodyOf(event: ServerEvent, all: ReadonlyMap<number, ServerEvent>): EventBody {
  const type = typeOf(event) as EventBody['type'];
  const seqOf = (id: unknown) => {
    const of = all.get(Number(id));
    return Number(
      of?.activityTaskScheduledEventAttributes?.activityId ?? of?.timerStartedEventAttributes?.timerId,
    );
  };
  switch (type) {
    case 'WorkflowExecutionStarted':
      return { type, size: 0 };
    case 'WorkflowTaskScheduled':
    case 'WorkflowTaskCompleted':
    case 'WorkflowTaskTimedOut':
    case 'WorkflowExecutionCancelRequested':
      return { type };
    case 'WorkflowTaskStarted': {
      const { historySizeBytes, suggestContinueAsNew } = event.workflowTaskStartedEventAttributes ?? {};
      return {
        type,
        historySize: Number(historySizeBytes ?? 0),
        suggestsContinueAsNew: suggestContinueAsNew ?? false,
      };
    }
    case 'WorkflowTaskFailed': {
      const { cause, newRunId } = event.workflowTaskFailedEventAttributes ?? {};
      const name = (WorkflowTaskFailedCause[cause ?? 0] ?? '').replace('WORKFLOW_TASK_FAILED_CAUSE_', '');
      return { type, cause: name, ...(newRunId ? { seed: newRunId } : {}) };
    }
    case 'TimerStarted': {
      const { timerId, startToFireTimeout } = event.timerStartedEventAttributes ?? {};
      return { type, seq: Number(timerId), ms: msOf(startToFireTimeout) };
    }
    case 'TimerFired':
      return { type, seq: Number(event.timerFiredEventAttributes?.timerId) };
    case 'TimerCanceled':
      return { type, seq: Number(event.timerCanceledEventAttributes?.timerId) };
    case 'ActivityTaskScheduled': {
      const { activityId } = event.activityTaskScheduledEventAttributes ?? {};
      return { type, seq: Number(activityId), activity: activityOf(event) };
    }
    case 'ActivityTaskStarted':
      return { type, seq: seqOf(event.activityTaskStartedEventAttributes?.scheduledEventId) };
    case 'ActivityTaskCancelRequested':
      return { type, seq: seqOf(event.activityTaskCancelRequestedEventAttributes?.scheduledEventId) };
    case 'ActivityTaskCompleted': {
      const { scheduledEventId, result } = event.activityTaskCompletedEventAttributes ?? {};
      const resolution: Resolution = { completed: { result: listOf(result)[0] ?? null } };
      return { type, seq: seqOf(scheduledEventId), resolution };
    }
    case 'ActivityTaskCanceled': {
      // The only ends that are recorded beside results: a workflow that has cancelled no longer reads how.
      const { scheduledEventId } = event.activityTaskCanceledEventAttributes ?? {};
      const failure = { message: 'Activity cancelled', canceledFailureInfo: {} };
      return { type, seq: seqOf(scheduledEventId), resolution: { cancelled: { failure } } };
    }
    case 'MarkerRecorded': {
      const { details, failure } = event.markerRecordedEventAttributes ?? {};
      const data = fromPayload(listOf(details?.data)[0]) as MarkerData | undefined;
      const { seconds = 0, nanos = 0 } = data?.complete_time ?? {};
      return {
        type,
        seq: data?.seq ?? 0,
        endedAt: seconds * 1_000 + Math.floor(nanos / 1e6),
        resolution: failure
          ? { failed: { failure } }
          : { completed: { result: listOf(details?.result)[0] ?? null } },
      };
    }
    case 'UpsertWorkflowSearchAttributes': {
      const { searchAttributes } = event.upsertWorkflowSearchAttributesEventAttributes ?? {};
      return { type, fields: searchAttributes?.indexedFields ?? {} };
    }
    case 'WorkflowPropertiesModified': {
      const { upsertedMemo } = event.workflowPropertiesModifiedEventAttributes ?? {};
      return { type, fields: upsertedMemo?.fields ?? {} };
    }
    case 'WorkflowExecutionSignaled': {
      const { signalName, input } = event.workflowExecutionSignaledEventAttributes ?? {};
      return { type, name: signalName ?? '', input: listOf(input) };
    }
    case 'WorkflowExecutionUpdateAccepted': {
      const { meta, input } = event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest ?? {};
      return { type, updateId: meta?.updateId ?? '', name: input?.name ?? '', input: listOf(input?.args) };
    }
    case 'WorkflowExecutionUpdateCompleted': {
      const { meta } = event.workflowExecutionUpdateCompletedEventAttributes ?? {};
      return { type, updateId: meta?.updateId ?? '' };
    }
    default:
      return closingOf(event, type);
  }
}

function closingOf(event: ServerEvent, type: string): EventBody {
  const closings: readonly string[] = [
    'WorkflowExecutionCompleted',
    'WorkflowExecutionFailed',
    'WorkflowExecutionCanceled',
    'WorkflowExecutionContinuedAsNew',
  ] satisfies readonly Closing[];
  if (!closings.includes(type)) throw new TypeError(`the simulation does not know the event ${type}`);
  const [result] = listOf(event.workflowExecutionCompletedEventAttributes?.result);
  const failure = event.workflowExecutionFailedEventAttributes?.failure;
  return { type: type as Closing, ...(result && { result }), ...(failure && { failure }) };
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
