import { coresdk } from '@temporalio/proto';
import { type Command, toMs, type Payload, type Scheduled, type ServerCommand } from '../temporal/history';

/** The activities and updates of earlier commands. */
export interface CommandState {
  readonly activities: Map<number, Scheduled>;
  /** The accepted updates. A rejection of an accepted update is a failure of its handler. */
  readonly accepted: Set<string>;
}

const { ABANDON, WAIT_CANCELLATION_COMPLETED } = coresdk.workflow_commands.ActivityCancellationType;

/**
 * Adds the commands of an activation to the commands of its workflow task. If a task schedules and cancels the same timer or activity, both
 * commands are removed, as in the SDK's core.
 *
 * @param task the commands of the task so far; the function changes them
 * @param known the activities and updates of earlier commands; the function adds the new ones
 * @returns local activities to start, and the sequence numbers of activities that the workflow must resolve as cancelled at once
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
      // The Temporal server adds the name and the input of the update.
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
  throw new TypeError(`the simulation does not support the command ${Object.keys(command).join(', ')}`);
}

/** Returns the parts of a command that must be the same in each replay. A history does not have all fields of a command. */
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
      // The order of the fields has no meaning.
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
