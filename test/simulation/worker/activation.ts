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
  { input, memo, searchAttributes }: RunStart,
  news: readonly HistoryEvent[],
  updates: readonly UpdateRequest[],
  runValidator: boolean,
  resolved: Set<number>,
): Job[] {
  const first: Job[] = [];
  const calls: Job[] = [];
  const others: Job[] = [];
  for (const event of news) {
    if (event.type === 'WorkflowExecutionStarted') {
      const [fields, indexedFields] = [memo, searchAttributes];
      // All else the SDK has from the creation of the workflow.
      first.push({
        initializeWorkflow: { arguments: input, memo: { fields }, searchAttributes: { indexedFields } },
      });
    } else if (event.type === 'WorkflowTaskFailed' && event.seed !== undefined)
      first.push({ updateRandomSeed: { randomnessSeed: seedOf(event.seed) } });
    else if (event.type === 'WorkflowExecutionSignaled')
      calls.push({ signalWorkflow: { signalName: event.name, input: event.input } });
    else if (event.type === 'WorkflowExecutionCancelRequested') others.push({ cancelWorkflow: {} });
    else if (event.type === 'TimerFired') others.push({ fireTimer: { seq: event.seq } });
    else if (isEndOfActivity(event) && !resolved.has(event.seq)) {
      resolved.add(event.seq);
      others.push({ resolveActivity: { seq: event.seq, result: event.resolution } });
    }
  }
  for (const { updateId: id, name, input: args } of updates)
    calls.push({ doUpdate: { id, protocolInstanceId: id, name, input: args, runValidator } });
  return [...first, ...calls, ...others];
}
