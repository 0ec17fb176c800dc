import { defaultPayloadConverter } from '@temporalio/common';
import type { coresdk, temporal } from '@temporalio/proto';

export type Payload = temporal.api.common.v1.IPayload;
export type Payloads = readonly Payload[];
export type Fields = Readonly<Record<string, Payload>>;
export type Failure = temporal.api.failure.v1.IFailure;
export type Command = coresdk.workflow_commands.IWorkflowCommand;
export type Job = coresdk.workflow_activation.IWorkflowActivationJob;
export type Resolution = coresdk.activity_result.IActivityResolution;

/**
 * What a history holds, as far as it matters to a workflow. The names are Temporal's; an activity and a timer go by the
 * number that the workflow gives them.
 */
export type EventBody =
  | { readonly type: 'WorkflowExecutionStarted'; readonly size: number }
  | { readonly type: 'WorkflowTaskScheduled' }
  | ({ readonly type: 'WorkflowTaskStarted' } & TaskFacts)
  | { readonly type: 'WorkflowTaskCompleted' }
  /** `seed`: a reset, from which on a run draws other random numbers. */
  | { readonly type: 'WorkflowTaskFailed'; readonly cause: string; readonly seed?: string }
  | { readonly type: 'WorkflowTaskTimedOut' }
  | { readonly type: 'TimerStarted'; readonly seq: number; readonly ms: number }
  | { readonly type: 'TimerFired' | 'TimerCanceled'; readonly seq: number }
  | { readonly type: 'ActivityTaskScheduled'; readonly seq: number; readonly activity: ActivityOptions }
  | { readonly type: 'ActivityTaskStarted' | 'ActivityTaskCancelRequested'; readonly seq: number }
  | {
      readonly type:
        'ActivityTaskCompleted' | 'ActivityTaskFailed' | 'ActivityTaskTimedOut' | 'ActivityTaskCanceled';
      readonly seq: number;
      readonly resolution: Resolution;
    }
  /** The result of a local activity. */
  | {
      readonly type: 'MarkerRecorded';
      readonly seq: number;
      readonly endedAt: number;
      readonly resolution: Resolution;
    }
  | { readonly type: 'UpsertWorkflowSearchAttributes'; readonly fields: Fields }
  | { readonly type: 'WorkflowPropertiesModified'; readonly fields: Fields }
  | { readonly type: 'WorkflowExecutionSignaled'; readonly name: string; readonly input: Payloads }
  /** An update that a reset applies again. */
  | ({ readonly type: 'WorkflowExecutionUpdateAdmitted' } & UpdateRequest)
  | ({ readonly type: 'WorkflowExecutionUpdateAccepted' } & UpdateRequest)
  | { readonly type: 'WorkflowExecutionUpdateCompleted'; readonly updateId: string }
  | { readonly type: 'WorkflowExecutionCancelRequested' }
  | { readonly type: Closing; readonly result?: Payload; readonly failure?: Failure };

export type EventType = EventBody['type'];
export type HistoryEvent = EventBody & { readonly id: number; readonly at: number };

export type Closing =
  | 'WorkflowExecutionCompleted'
  | 'WorkflowExecutionFailed'
  | 'WorkflowExecutionCanceled'
  | 'WorkflowExecutionTerminated'
  | 'WorkflowExecutionTimedOut'
  | 'WorkflowExecutionContinuedAsNew';

/** What the server tells a workflow with a task. */
export interface TaskFacts {
  readonly historySize: number;
  readonly suggestsContinueAsNew: boolean;
}

export interface UpdateRequest {
  readonly updateId: string;
  readonly name: string;
  readonly input: Payloads;
}

/** Times in milliseconds; 0 where there is no limit. */
export interface ActivityOptions {
  readonly name: string;
  readonly taskQueue: string;
  readonly input: Payloads;
  readonly scheduleToStartMs: number;
  readonly startToCloseMs: number;
  readonly scheduleToCloseMs: number;
  readonly heartbeatMs: number;
  readonly retry: {
    readonly initialMs: number;
    readonly coefficient: number;
    readonly maximumMs: number;
    readonly attempts: number;
  };
  readonly cancellation: 'try' | 'wait' | 'abandon';
}

/** Events that a workflow task makes by its commands; the others happen to the workflow. */
const BY_COMMANDS: ReadonlySet<EventType> = new Set<EventType>([
  'TimerStarted',
  'TimerCanceled',
  'ActivityTaskScheduled',
  'ActivityTaskCancelRequested',
  'MarkerRecorded',
  'UpsertWorkflowSearchAttributes',
  'WorkflowPropertiesModified',
  'WorkflowExecutionUpdateAccepted',
  'WorkflowExecutionUpdateCompleted',
  'WorkflowExecutionCompleted',
  'WorkflowExecutionFailed',
  'WorkflowExecutionCanceled',
  'WorkflowExecutionContinuedAsNew',
]);

export function isByCommand({ type }: EventBody): boolean {
  return BY_COMMANDS.has(type);
}

/** Where a workflow task that was completed stands in a history: indices of its start and its completion. */
export interface PastTask {
  readonly startedAt: number;
  readonly completedAt: number;
}

/** The workflow tasks that were completed. One that failed or timed out has no part in what a workflow does. */
export function pastTasks(events: readonly HistoryEvent[]): PastTask[] {
  const tasks: PastTask[] = [];
  let startedAt = -1;
  for (const [index, { type }] of events.entries()) {
    if (type === 'WorkflowTaskStarted') startedAt = index;
    if (type === 'WorkflowTaskCompleted') tasks.push({ startedAt, completedAt: index });
  }
  return tasks;
}

export function toPayload(value: unknown): Payload {
  return defaultPayloadConverter.toPayload<unknown>(value);
}

export function fromPayload(payload: Payload | null | undefined): unknown {
  return payload ? defaultPayloadConverter.fromPayload<unknown>(payload) : undefined;
}

/** Bytes, roughly: what an event costs beside what it carries. */
const EVENT_BYTES = 120;

export function sizeOf(body: EventBody): number {
  const carried =
    'activity' in body
      ? body.activity.input
      : 'resolution' in body
        ? [body.resolution.completed?.result]
        : [];
  const bytes = carried.reduce((sum, payload) => sum + (payload?.data?.length ?? 0), 0);
  return EVENT_BYTES + bytes + (body.type === 'WorkflowExecutionStarted' ? body.size : 0);
}
