import { defaultPayloadConverter } from '@temporalio/common';
import { type coresdk, temporal } from '@temporalio/proto';

const { RetryState } = temporal.api.enums.v1;

export type Payload = temporal.api.common.v1.IPayload;
export type Payloads = readonly Payload[];
export type Fields = Readonly<Record<string, Payload>>;
export type Failure = temporal.api.failure.v1.IFailure;
export type Command = coresdk.workflow_commands.IWorkflowCommand;
export type Job = coresdk.workflow_activation.IWorkflowActivationJob;
export type Scheduled = coresdk.workflow_commands.IScheduleActivity;
export type Resolution = coresdk.activity_result.IActivityResolution;

/**
 * What a history holds, as far as it matters to a workflow. The names are Temporal's; an activity and a timer go by the
 * number that the workflow gives them.
 */
export type EventBody =
  | { readonly type: 'WorkflowExecutionStarted'; readonly size: number }
  | {
      readonly type:
        | 'WorkflowTaskScheduled'
        | 'WorkflowTaskCompleted'
        | 'WorkflowTaskTimedOut'
        | 'WorkflowExecutionCancelRequested';
    }
  | { readonly type: 'WorkflowTaskStarted'; readonly historySize: number; readonly suggestsNew: boolean }
  /** `seed`: a reset, from which on a run draws other random numbers. */
  | { readonly type: 'WorkflowTaskFailed'; readonly cause: string; readonly seed?: string }
  | { readonly type: 'TimerStarted'; readonly seq: number; readonly ms: number }
  | {
      readonly type: 'TimerFired' | 'TimerCanceled' | 'ActivityTaskStarted' | 'ActivityTaskCancelRequested';
      readonly seq: number;
    }
  | { readonly type: 'ActivityTaskScheduled'; readonly seq: number; readonly activity: Scheduled }
  | { readonly type: ActivityEnd; readonly seq: number; readonly resolution: Resolution }
  | ({ readonly type: 'MarkerRecorded' } & Marker)
  | {
      readonly type: 'UpsertWorkflowSearchAttributes' | 'WorkflowPropertiesModified';
      readonly fields: Fields;
    }
  | { readonly type: 'WorkflowExecutionSignaled'; readonly name: string; readonly input: Payloads }
  /** Admitted: an update that a reset applies again. */
  | ({
      readonly type: 'WorkflowExecutionUpdateAdmitted' | 'WorkflowExecutionUpdateAccepted';
    } & UpdateRequest)
  | ({ readonly type: 'WorkflowExecutionUpdateCompleted'; readonly updateId: string } & End)
  | Closing;

export type HistoryEvent = EventBody & { readonly id: number; readonly at: number };

/** What a workflow task asks of the server. A refused update leaves no event. */
export type ServerCommand =
  EventBody | { readonly type: 'UpdateRejected'; readonly updateId: string; readonly failure: Failure };

/** How a run ends. */
export type Closing =
  | ({
      readonly type:
        | 'WorkflowExecutionCompleted'
        | 'WorkflowExecutionFailed'
        | 'WorkflowExecutionCanceled'
        | 'WorkflowExecutionTerminated';
    } & End)
  | { readonly type: 'WorkflowExecutionContinuedAsNew'; readonly input: Payloads; readonly memo: Fields };

/** How an activity ends for its workflow. */
export type ActivityEnd =
  'ActivityTaskCompleted' | 'ActivityTaskFailed' | 'ActivityTaskTimedOut' | 'ActivityTaskCanceled';

/** How a workflow or an update ends. */
export interface End {
  readonly result?: Payload;
  readonly failure?: Failure;
}

/** The result of a local activity. */
export interface Marker {
  readonly seq: number;
  readonly endedAt: number;
  readonly resolution: Resolution;
}

export interface UpdateRequest {
  readonly updateId: string;
  readonly name: string;
  readonly input: Payloads;
}

/** What a run is started with, and hands to the one that follows it. */
export interface RunStart {
  readonly workflowId: string;
  readonly workflowType: string;
  readonly taskQueue: string;
  readonly input: Payloads;
  readonly memo: Fields;
  readonly searchAttributes: Fields;
  readonly runId: string;
  readonly firstRunId: string;
  /** The run that a reset has taken over from, and that one's, to the first: its numbers are drawn again. */
  readonly originalRunId: string;
  readonly continuedFromRunId?: string;
  /** Who has asked for its start, and the id of that request. */
  readonly asked?: { readonly by: string; readonly requestId: string };
}

/** @param time its seconds are a `Long`, or what JSON makes of one; 0 if there is none */
export function msOf(time: { seconds?: unknown; nanos?: number | null } | null | undefined): number {
  return Number(time?.seconds ?? 0) * 1_000 + Math.floor((time?.nanos ?? 0) / 1e6);
}

const BY_COMMAND =
  /^(Timer(Started|Canceled)|ActivityTask(Scheduled|CancelRequested)|MarkerRecorded|UpsertWorkflowSearchAttributes|WorkflowPropertiesModified|WorkflowExecution(UpdateAccepted|UpdateCompleted|Completed|Failed|Canceled|ContinuedAsNew))$/;

/** Whether a workflow task has made it by a command; the others happen to the workflow. */
export function isByCommand({ type }: EventBody): boolean {
  return BY_COMMAND.test(type);
}

export function isClosing(command: ServerCommand): command is Closing {
  return /^WorkflowExecution(Completed|Failed|Canceled|Terminated|ContinuedAsNew)$/.test(command.type);
}

export function isEndOfActivity<Body extends { readonly type: string }>(
  body: Body,
): body is Extract<Body, { readonly type: ActivityEnd }> {
  return /^ActivityTask(Completed|Failed|TimedOut|Canceled)$/.test(body.type);
}

/** Whether this timer or activity has ended in a history. */
export function isOver(events: readonly HistoryEvent[], kind: 'Timer' | 'Activity', seq: number): boolean {
  return events.some(
    (event) =>
      'seq' in event &&
      event.seq === seq &&
      (kind === 'Timer' ? /^Timer(Fired|Canceled)$/.test(event.type) : isEndOfActivity(event)),
  );
}

/** The workflow tasks that were completed, by the indices of their events. One that failed has no part in what a workflow does. */
export function pastTasks(events: readonly HistoryEvent[]) {
  const tasks: { readonly startedAt: number; readonly completedAt: number }[] = [];
  let startedAt = -1;
  for (const [index, { type }] of events.entries()) {
    if (type === 'WorkflowTaskStarted') startedAt = index;
    if (type === 'WorkflowTaskCompleted') tasks.push({ startedAt, completedAt: index });
  }
  return tasks;
}

export type RetryStateName = keyof typeof RetryState extends `RETRY_STATE_${infer Name}` ? Name : never;

export function activityFailure(
  { seq, name }: { readonly seq: number; readonly name: string },
  message: string,
  cause: Failure,
  why: RetryStateName,
): Failure {
  const retryState = RetryState[`RETRY_STATE_${why}`];
  const activityFailureInfo = { activityId: String(seq), activityType: { name }, retryState };
  return { message, cause, activityFailureInfo };
}

export function toPayload(value: unknown): Payload {
  return defaultPayloadConverter.toPayload<unknown>(value);
}

export function fieldsOf(values: Readonly<Record<string, unknown>>): Fields {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, toPayload(value)]));
}

export function fromPayload(payload: Payload | null | undefined): unknown {
  return payload ? defaultPayloadConverter.fromPayload<unknown>(payload) : undefined;
}

/** Bytes, roughly: what an event costs beside what it carries. */
const EVENT_BYTES = 120;

export function sizeOf(body: EventBody): number {
  if (body.type === 'WorkflowExecutionStarted') return EVENT_BYTES + body.size;
  const carried =
    'activity' in body
      ? (body.activity.arguments ?? [])
      : 'resolution' in body
        ? [body.resolution.completed?.result]
        : [];
  return carried.reduce((sum, payload) => sum + (payload?.data?.length ?? 0), EVENT_BYTES);
}
