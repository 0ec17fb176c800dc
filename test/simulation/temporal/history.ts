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
 * What a history holds, as far as it matters to a workflow. The names are Temporal's; an activity and a timer go by the
 * number that the workflow gives them.
 */
export type EventBody =
  | {
      readonly type:
        | `WorkflowTask${'Scheduled' | 'Completed' | 'TimedOut'}`
        | `WorkflowExecution${'Started' | 'CancelRequested'}`;
    }
  | { readonly type: 'WorkflowTaskStarted'; readonly suggestsNew: boolean }
  /** `seed`: a reset, from which on a run draws other random numbers. */
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
  /** Admitted: an update that a reset applies again. */
  | ({ readonly type: `WorkflowExecutionUpdate${'Admitted' | 'Accepted'}` } & UpdateRequest)
  | ({ readonly type: 'WorkflowExecutionUpdateCompleted'; readonly updateId: string } & End)
  | Closing;

export type HistoryEvent = EventBody & { readonly id: number; readonly at: number };

/** What a workflow task asks of the server. A refused update leaves no event. */
export type ServerCommand =
  EventBody | { readonly type: 'UpdateRejected'; readonly updateId: string; readonly failure: Failure };

/** How a run ends. */
export type Closing =
  | ({ readonly type: `WorkflowExecution${'Completed' | 'Failed' | 'Canceled' | 'Terminated'}` } & End)
  | { readonly type: 'WorkflowExecutionContinuedAsNew'; readonly input: Payloads; readonly memo: Fields };

/** How an activity ends for its workflow. */
export type ActivityEnd = `ActivityTask${'Completed' | 'Failed' | 'TimedOut' | 'Canceled'}`;

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
  readonly requester?: { readonly by: string; readonly requestId: string };
}

/** @param time its seconds are a `Long`, or what JSON makes of one; 0 if there is none */
export function toMs(time: { seconds?: unknown; nanos?: number | null } | null | undefined): number {
  return Number(time?.seconds ?? 0) * 1_000 + Math.floor((time?.nanos ?? 0) / 1e6);
}

const COMMAND_EVENT =
  /^(Timer(Started|Canceled)|ActivityTask(Scheduled|CancelRequested)|MarkerRecorded|UpsertWorkflowSearchAttributes|WorkflowPropertiesModified|WorkflowExecution(UpdateAccepted|UpdateCompleted|Completed|Failed|Canceled|ContinuedAsNew))$/;

/** Whether a workflow task has made it by a command; the others happen to the workflow. */
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
 * Where the workflow tasks were started that were completed; nothing comes between. One that failed has no part in what a
 * workflow does.
 */
export function completedTaskIndexes(events: readonly HistoryEvent[]): number[] {
  return events.flatMap(({ type }, index) => (type === 'WorkflowTaskCompleted' ? [index - 1] : []));
}

export function activityFailure(
  { seq, name }: { readonly seq: number; readonly name: string },
  message: string,
  cause: Failure,
  why?: RetryState,
): Failure {
  const retryState = encodeRetryState(why) ?? null;
  const activityFailureInfo = { activityId: String(seq), activityType: { name }, retryState };
  return { message, cause, activityFailureInfo };
}

export function toPayload(value: unknown): Payload {
  return defaultPayloadConverter.toPayload<unknown>(value);
}

export function fromPayload(payload: Payload | null | undefined): unknown {
  return payload ? defaultPayloadConverter.fromPayload<unknown>(payload) : undefined;
}
