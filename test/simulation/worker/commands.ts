import { optionalTsToMs } from '@temporalio/common/lib/time';
import type { coresdk } from '@temporalio/proto';
import { type ActivityOptions, type Command, type Payload, type Payloads } from '../temporal/history';
import type { ServerCommand } from '../temporal/run';

export interface LocalCall {
  readonly seq: number;
  readonly name: string;
  readonly input: Payloads;
}

/** What a workflow has asked for before. */
export interface Known {
  readonly activities: Map<number, ActivityOptions>;
  /** Updates that it has accepted: a refusal after that is the failure of its handler. */
  readonly accepted: Set<string>;
}

/** What the commands of an activation lead to. */
interface Made {
  /** Local activities that begin. */
  readonly locals: readonly LocalCall[];
  /** Activities whose end the workflow hears at once. */
  readonly cancelled: readonly number[];
}

const CANCELLATIONS = ['try', 'wait', 'abandon'] as const;

/**
 * Adds what an activation asks for to what its task sends to the server. What the same task has begun and cancels is taken
 * out again, as by the SDK's core.
 *
 * @param task what the task has asked for so far; it is changed
 * @param known it is added to
 */
export function addCommands(
  commands: readonly Command[],
  task: ServerCommand[],
  { activities, accepted }: Known,
): Made {
  const locals: LocalCall[] = [];
  const cancelled: number[] = [];
  for (const command of commands) {
    if (command.startTimer) {
      const { seq, startToFireTimeout } = command.startTimer;
      task.push({ type: 'TimerStarted', seq: seq ?? 0, ms: optionalTsToMs(startToFireTimeout) ?? 0 });
    } else if (command.cancelTimer) {
      const seq = command.cancelTimer.seq ?? 0;
      if (!takeOut(task, 'TimerStarted', seq)) task.push({ type: 'TimerCanceled', seq });
    } else if (command.scheduleActivity) {
      const seq = command.scheduleActivity.seq ?? 0;
      const activity = activityOf(command.scheduleActivity);
      activities.set(seq, activity);
      task.push({ type: 'ActivityTaskScheduled', seq, activity });
    } else if (command.requestCancelActivity) {
      const seq = command.requestCancelActivity.seq ?? 0;
      const cancellation = activities.get(seq)?.cancellation;
      const isUnsent = takeOut(task, 'ActivityTaskScheduled', seq);
      if (!isUnsent && cancellation !== 'abandon') task.push({ type: 'ActivityTaskCancelRequested', seq });
      if (isUnsent || cancellation !== 'wait') cancelled.push(seq);
    } else if (command.scheduleLocalActivity) {
      const { seq, activityType, arguments: input } = command.scheduleLocalActivity;
      locals.push({ seq: seq ?? 0, name: activityType ?? '', input: input ?? [] });
    } else {
      task.push(otherCommand(command, accepted));
    }
  }
  return { locals, cancelled };
}

function otherCommand(command: Command, accepted: Set<string>): ServerCommand {
  if (command.upsertWorkflowSearchAttributes)
    return {
      type: 'UpsertWorkflowSearchAttributes',
      fields: command.upsertWorkflowSearchAttributes.searchAttributes?.indexedFields ?? {},
    };
  if (command.modifyWorkflowProperties)
    return {
      type: 'WorkflowPropertiesModified',
      fields: command.modifyWorkflowProperties.upsertedMemo?.fields ?? {},
    };
  if (command.updateResponse) return updateCommand(command.updateResponse, accepted);
  if (command.completeWorkflowExecution)
    return {
      type: 'WorkflowExecutionCompleted',
      result: command.completeWorkflowExecution.result as Payload,
    };
  if (command.failWorkflowExecution)
    return { type: 'WorkflowExecutionFailed', failure: command.failWorkflowExecution.failure ?? {} };
  if (command.cancelWorkflowExecution) return { type: 'WorkflowExecutionCanceled' };
  if (command.continueAsNewWorkflowExecution) {
    const { arguments: input, memo } = command.continueAsNewWorkflowExecution;
    return { type: 'ContinueAsNew', input: input ?? [], memo: memo ?? {} };
  }
  throw new TypeError(`the simulation does not know the command ${Object.keys(command).join(', ')}`);
}

function updateCommand(
  response: coresdk.workflow_commands.IUpdateResponse,
  accepted: Set<string>,
): ServerCommand {
  const updateId = response.protocolInstanceId ?? '';
  // The server adds what was asked for, which it knows.
  if (response.accepted) accepted.add(updateId);
  if (response.accepted) return { type: 'WorkflowExecutionUpdateAccepted', updateId, name: '', input: [] };
  if (response.completed) return { type: 'UpdateDone', updateId, result: response.completed };
  const type = accepted.has(updateId) ? 'UpdateDone' : 'UpdateRejected';
  return { type, updateId, failure: response.rejected ?? {} };
}

function takeOut(
  task: ServerCommand[],
  type: 'TimerStarted' | 'ActivityTaskScheduled',
  seq: number,
): boolean {
  const index = task.findIndex((each) => each.type === type && each.seq === seq);
  if (index >= 0) task.splice(index, 1);
  return index >= 0;
}

function activityOf(command: coresdk.workflow_commands.IScheduleActivity): ActivityOptions {
  const ms = (timestamp: Parameters<typeof optionalTsToMs>[0]) => optionalTsToMs(timestamp) ?? 0;
  const { retryPolicy } = command;
  return {
    name: command.activityType ?? '',
    taskQueue: command.taskQueue ?? '',
    input: command.arguments ?? [],
    scheduleToStartMs: ms(command.scheduleToStartTimeout),
    startToCloseMs: ms(command.startToCloseTimeout),
    scheduleToCloseMs: ms(command.scheduleToCloseTimeout),
    heartbeatMs: ms(command.heartbeatTimeout),
    retry: {
      initialMs: ms(retryPolicy?.initialInterval) || 1_000,
      coefficient: retryPolicy?.backoffCoefficient ?? 2,
      maximumMs: ms(retryPolicy?.maximumInterval),
      attempts: retryPolicy?.maximumAttempts ?? 0,
    },
    cancellation: CANCELLATIONS[command.cancellationType ?? 0],
  };
}
