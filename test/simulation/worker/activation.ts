import { msNumberToTs } from '@temporalio/common/lib/time';
import type { coresdk } from '@temporalio/proto';
import {
  type HistoryEvent,
  isEndOfActivity,
  type Job,
  type RunStart,
  type UpdateRequest,
} from '../temporal/history';
import { seedOf } from './seed';

/**
 * What a task tells the workflow, in the order of the SDK's core: signals and updates come before all that ended.
 *
 * @param resolved activities that have an end for the workflow; it is added to
 */
export function jobsOf(
  start: RunStart,
  news: readonly HistoryEvent[],
  updates: readonly UpdateRequest[],
  runValidator: boolean,
  resolved: Set<number>,
): Job[] {
  const first: Job[] = [];
  const calls: Job[] = [];
  const others: Job[] = [];
  const identity = 'simulation';
  for (const event of news) {
    if (event.type === 'WorkflowExecutionStarted')
      first.push({ initializeWorkflow: initialization(start, event.at) });
    else if (event.type === 'WorkflowTaskFailed' && event.seed !== undefined)
      first.push({ updateRandomSeed: { randomnessSeed: seedOf(event.seed) } });
    else if (event.type === 'WorkflowExecutionSignaled') {
      const { name: signalName, input } = event;
      calls.push({ signalWorkflow: { signalName, input: [...input], identity, headers: {} } });
    } else if (event.type === 'WorkflowExecutionCancelRequested')
      others.push({ cancelWorkflow: { reason: '' } });
    else if (event.type === 'TimerFired') others.push({ fireTimer: { seq: event.seq } });
    else if (isEndOfActivity(event) && !resolved.has(event.seq)) {
      resolved.add(event.seq);
      others.push({ resolveActivity: { seq: event.seq, result: event.resolution } });
    }
  }
  for (const { updateId, name, input } of updates) {
    const ids = { id: updateId, protocolInstanceId: updateId, meta: { updateId, identity } };
    calls.push({ doUpdate: { ...ids, name, input: [...input], headers: {}, runValidator } });
  }
  return [...first, ...calls, ...others];
}

function initialization(
  { workflowId, workflowType, input, memo, searchAttributes, ...start }: RunStart,
  startedAt: number,
): coresdk.workflow_activation.IInitializeWorkflow {
  return {
    workflowId,
    workflowType,
    arguments: [...input],
    randomnessSeed: seedOf(start.originalRunId),
    headers: {},
    identity: 'simulation',
    firstExecutionRunId: start.firstRunId,
    attempt: 1,
    startTime: msNumberToTs(startedAt),
    memo: { fields: { ...memo } },
    searchAttributes: { indexedFields: { ...searchAttributes } },
    continuedFromExecutionRunId: start.continuedFromRunId ?? '',
  };
}
