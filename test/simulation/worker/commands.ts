import { coresdk } from '@temporalio/proto';
import { type Command, toMs, type Payload, type Scheduled, type ServerCommand } from '../temporal/history';

/** What a workflow has asked for before. */
export interface CommandState {
  readonly activities: Map<number, Scheduled>;
  /** Updates that it has accepted: a refusal after that is the failure of its handler. */
  readonly accepted: Set<string>;
}

const { ABANDON, WAIT_CANCELLATION_COMPLETED } = coresdk.workflow_commands.ActivityCancellationType;

/**
 * Adds what an activation asks for to what its task sends to the server. What the same task has begun and cancels is taken
 * out again, as by the SDK's core.
 *
 * @param task what the task has asked for so far; it is changed
 * @param known it is added to
 * @returns local activities that begin, and the numbers of activities whose end the workflow hears at once
 */
export function addCommands(commands: readonly Command[], task: ServerCommand[], known: CommandState) {
  const locals: coresdk.workflow_commands.IScheduleLocalActivity[] = [];
  const cancelled: number[] = [];
  const takeOut = (type: 'TimerStarted' | 'ActivityTaskScheduled', seq: number) => {
    const index = task.findIndex((each) => each.type === type && each.seq === seq);
    if (index >= 0) task.splice(index, 1);
    return index >= 0;
  };
  for (const command of commands) {
    const all = Object.values(command) as ({ readonly seq?: number | null } | null | undefined)[];
    const seq = all.find((each) => typeof each?.seq === 'number')?.seq ?? 0;
    if (command.cancelTimer) {
      if (!takeOut('TimerStarted', seq)) task.push({ type: 'TimerCanceled', seq });
    } else if (command.requestCancelActivity) {
      const cancellation = known.activities.get(seq)?.cancellationType;
      const isUnsent = takeOut('ActivityTaskScheduled', seq);
      if (!isUnsent && cancellation !== ABANDON) task.push({ type: 'ActivityTaskCancelRequested', seq });
      if (isUnsent || cancellation !== WAIT_CANCELLATION_COMPLETED) cancelled.push(seq);
    } else if (command.scheduleLocalActivity) locals.push(command.scheduleLocalActivity);
    else task.push(serverCommand(command, seq, known));
  }
  return { locals, cancelled };
}

function serverCommand(command: Command, seq: number, { activities, accepted }: CommandState): ServerCommand {
  const {
    scheduleActivity: activity,
    upsertWorkflowSearchAttributes: upserted,
    modifyWorkflowProperties: modified,
    updateResponse,
    completeWorkflowExecution: completed,
    failWorkflowExecution: failed,
    continueAsNewWorkflowExecution: continued,
  } = command;
  if (command.startTimer)
    return { type: 'TimerStarted', seq, ms: toMs(command.startTimer.startToFireTimeout) };
  if (activity) {
    activities.set(seq, activity);
    return { type: 'ActivityTaskScheduled', seq, activity };
  }
  if (upserted)
    return { type: 'UpsertWorkflowSearchAttributes', fields: upserted.searchAttributes?.indexedFields ?? {} };
  if (modified) return { type: 'WorkflowPropertiesModified', fields: modified.upsertedMemo?.fields ?? {} };
  if (updateResponse) {
    const updateId = updateResponse.protocolInstanceId ?? '';
    if (updateResponse.accepted) {
      accepted.add(updateId);
      // The server adds what was asked for, which it knows.
      return { type: 'WorkflowExecutionUpdateAccepted', updateId, name: '', input: [] };
    }
    const { completed: result, rejected } = updateResponse;
    if (result) return { type: 'WorkflowExecutionUpdateCompleted', updateId, result };
    const type = accepted.has(updateId) ? 'WorkflowExecutionUpdateCompleted' : 'UpdateRejected';
    return { type, updateId, failure: rejected ?? {} };
  }
  if (completed) return { type: 'WorkflowExecutionCompleted', result: completed.result ?? {} };
  if (failed) return { type: 'WorkflowExecutionFailed', failure: failed.failure ?? {} };
  if (command.cancelWorkflowExecution) return { type: 'WorkflowExecutionCanceled' };
  if (continued) {
    const { arguments: input, memo } = continued;
    return { type: 'WorkflowExecutionContinuedAsNew', input: input ?? [], memo: memo ?? {} };
  }
  throw new TypeError(`the simulation does not know the command ${Object.keys(command).join(', ')}`);
}

/** What must be the same in each replay. A history does not hold all that a command has. */
export function fingerprint(command: ServerCommand): string {
  return `${command.type} ${JSON.stringify(compared(command))}`;
}

function compared(command: ServerCommand): unknown {
  switch (command.type) {
    case 'ActivityTaskScheduled': {
      const { activityType, taskQueue, startToCloseTimeout, scheduleToCloseTimeout } = command.activity;
      const [startMs, scheduleMs] = [startToCloseTimeout, scheduleToCloseTimeout].map(toMs) as [
        number,
        number,
      ];
      // The Temporal server records a start-to-close timeout that is never longer than the schedule-to-close timeout.
      const limits = [scheduleMs > 0 ? Math.min(startMs, scheduleMs) : startMs, scheduleMs];
      return [command.seq, activityType, taskQueue, command.activity.arguments?.map(textOf), limits];
    }
    case 'TimerStarted':
      return [command.seq, command.ms];
    case 'UpsertWorkflowSearchAttributes':
    case 'WorkflowPropertiesModified':
      // A map, in whatever order.
      return Object.entries(command.fields)
        .map(([name, value]) => [name, textOf(value)])
        .sort();
    case 'WorkflowExecutionUpdateAccepted':
    case 'WorkflowExecutionUpdateCompleted':
      return command.updateId;
    case 'WorkflowExecutionCompleted':
      return textOf(command.result);
    case 'WorkflowExecutionFailed': {
      const { message, applicationFailureInfo } = command.failure ?? {};
      return [message, applicationFailureInfo?.details?.payloads?.map(textOf)];
    }
    default:
      return 'seq' in command ? command.seq : null;
  }
}

function textOf(payload: Payload | undefined): string {
  return Buffer.from(payload?.data ?? []).toString();
}
