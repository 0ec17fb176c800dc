import { defaultPayloadConverter, encodeRetryState, type RetryState } from '@temporalio/common';
import type { coresdk, temporal } from '@temporalio/proto';

export type Payload = temporal.api.common.v1.IPayload;
export type Payloads = Payload[];
export type Fields = Record<string, Payload>;
export type Failure = temporal.api.failure.v1.IFailure;
export type Command = coresdk.workflow_commands.IWorkflowCommand;
export type Job = coresdk.workflow_activation.IWorkflowActivationJob;
export type Scheduled = coresdk.workflow_commands.IScheduleActivity;
export type Resolution = coresdk.activity_result.IActivityResolution;

/**
 * The events of a history that affect a workflow, with Temporal's names. Activities and timers are identified by the sequence number that
 * the workflow gives them.
 */
export type EventBody =
  | {
      readonly type:
        | `WorkflowTask${'Scheduled' | 'Completed' | 'TimedOut'}`
        | `WorkflowExecution${'Started' | 'CancelRequested'}`;
    }
  | { readonly type: 'WorkflowTaskStarted'; readonly suggestsNew: boolean }
  /** `seed` is the run ID from which the random numbers after a reset are drawn. */
  | { readonly type: 'WorkflowTaskFailed'; readonly cause: string; readonly seed?: string }
  | { readonly type: 'TimerStarted'; readonly seq: number; readonly ms: number }
  | {
      readonly type: `Timer${'Fired' | 'Canceled'}` | `ActivityTask${'Started' | 'CancelRequested'}`;
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
  /** An admitted update is an update that a reset applies again. */
  | ({ readonly type: `WorkflowExecutionUpdate${'Admitted' | 'Accepted'}` } & UpdateRequest)
  | ({ readonly type: 'WorkflowExecutionUpdateCompleted'; readonly updateId: string } & End)
  | Closing;

export type HistoryEvent = EventBody & { readonly id: number; readonly at: number };

/** A command of a workflow task to the Temporal server. A rejected update leaves no event. */
export type ServerCommand =
  EventBody | { readonly type: 'UpdateRejected'; readonly updateId: string; readonly failure: Failure };

/** The event that closes a run. */
export type Closing =
  | ({ readonly type: `WorkflowExecution${'Completed' | 'Failed' | 'Canceled' | 'Terminated'}` } & End)
  | { readonly type: 'WorkflowExecutionContinuedAsNew'; readonly input: Payloads; readonly memo: Fields };

/** The types of the events that end an activity. */
export type ActivityEnd = `ActivityTask${'Completed' | 'Failed' | 'TimedOut' | 'Canceled'}`;

/** The result or the failure of a workflow or an update. */
export interface End {
  readonly result?: Payload;
  readonly failure?: Failure;
}

/** The recorded end of a local activity. */
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

/** The values with which a run starts. The next run of the workflow receives them too. */
export interface RunStart {
  readonly workflowId: string;
  readonly workflowType: string;
  readonly taskQueue: string;
  readonly input: Payloads;
  readonly memo: Fields;
  readonly searchAttributes: Fields;
  readonly runId: string;
  readonly firstRunId: string;
  /** After resets, the ID of the original run: a run that a reset made draws the same random numbers again. */
  readonly originalRunId: string;
  readonly continuedFromRunId?: string;
  /** The run or the client that requested the start, and the ID of that request. */
  readonly requester?: { readonly by: string; readonly requestId: string };
}

/** Converts a duration or a timestamp to milliseconds; 0 if `time` is not set. @param time the seconds are a `Long`, or its JSON value */
export function toMs(time: { seconds?: unknown; nanos?: number | null } | null | undefined): number {
  return Number(time?.seconds ?? 0) * 1_000 + Math.floor((time?.nanos ?? 0) / 1e6);
}

const COMMAND_EVENT =
  /^(Timer(Started|Canceled)|ActivityTask(Scheduled|CancelRequested)|MarkerRecorded|UpsertWorkflowSearchAttributes|WorkflowPropertiesModified|WorkflowExecution(UpdateAccepted|UpdateCompleted|Completed|Failed|Canceled|ContinuedAsNew))$/;

/** Whether a command of a workflow task made the event. Other events come from outside of the workflow. */
export function isCommandEvent({ type }: EventBody): boolean {
  return COMMAND_EVENT.test(type);
}

export function isClosing(command: ServerCommand): command is Closing {
  return /^WorkflowExecution(Completed|Failed|Canceled|Terminated|ContinuedAsNew)$/.test(command.type);
}

export const ACTIVITY_END = /^ActivityTask(Completed|Failed|TimedOut|Canceled)$/;

export function isActivityEnd<Body extends { readonly type: string }>(
  body: Body,
): body is Extract<Body, { readonly type: ActivityEnd }> {
  return ACTIVITY_END.test(body.type);
}

/**
 * Returns the indexes of the `WorkflowTaskStarted` events whose tasks were completed. Failed workflow tasks have no effect on a workflow.
 */
export function completedTaskIndexes(events: readonly HistoryEvent[]): number[] {
  return events.flatMap(({ type }, index) => (type === 'WorkflowTaskCompleted' ? [index - 1] : []));
}

export function activityFailure(
  { seq, name }: { readonly seq: number; readonly name: string },
  message: string,
  cause: Failure,
  state?: RetryState,
): Failure {
  const retryState = encodeRetryState(state) ?? null;
  const activityFailureInfo = { activityId: String(seq), activityType: { name }, retryState };
  return { message, cause, activityFailureInfo };
}

export function toPayload(value: unknown): Payload {
  return defaultPayloadConverter.toPayload<unknown>(value);
}

export function fromPayload(payload: Payload | null | undefined): unknown {
  return payload ? defaultPayloadConverter.fromPayload<unknown>(payload) : undefined;
}
