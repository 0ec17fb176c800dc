import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  condition,
  isCancellation,
  upsertMemo,
  workflowInfo,
} from '@temporalio/workflow';
import { checkRequest } from '../../core/check-request';
import { problemText } from '../../core/problem';
import { isRecord } from '../../core/json';
import { MEMO_RECEIPT } from '../../core/names';
import type { FollowUpPlan, FollowUpRequest } from '../../core/request';
import type { FollowUpResult } from '../../core/result';
import { FollowUpContext } from './context';
import { deliver } from './deliver';
import { showInvalid } from './display';
import { invalidRequest } from './failures';
import { receiveOperators } from './operator';
import {
  type ContinuedFollowUp,
  type FollowUpState,
  initialState,
  mayHaveBeenSentBefore,
  receiptOf,
} from './state';
import { watchJob } from './watch';

/**
 * Sends one message to an agent job, once, and waits for the job durably.
 *
 * Baseline, send, watch, settle, result: docs/architecture.md draws it, docs/guarantees.md says what holds when
 * something fails.
 *
 * @returns the final job with its `prLink`, and the receipt that says how we know
 * @throws ApplicationFailure non-retryable, of a type in `FAILURE_TYPES`, with `FailureDetails` as its first detail
 */
export async function followUp(input: FollowUpRequest | ContinuedFollowUp): Promise<FollowUpResult> {
  const continued = continuedState(input);
  if (continued !== null) return follow(new FollowUpContext(continued));
  const { prompt, ...plan } = checkedPlan(input);
  const { runId, firstExecutionRunId, startTime } = workflowInfo();
  const state = initialState(plan, startTime.getTime());
  // A reset made this run, and the run before it may have sent. However it ends, it must not say that nothing was sent.
  if (runId !== firstExecutionRunId) state.delivery = mayHaveBeenSentBefore(state.delivery);
  return follow(new FollowUpContext(state), prompt);
}

/** One run from its first step to its end. Without a prompt it can only watch. */
async function follow(context: FollowUpContext, prompt?: string): Promise<FollowUpResult> {
  const { state } = context;
  try {
    context.show();
    receiveOperators(context);
    await context.learnSettings();
    if (prompt !== undefined) await deliver(context, prompt);
    if (state.watch === null) throw new TypeError('a follow-up is watched before its message was delivered');
    const job = await watchJob(context, state.watch);
    context.enter('done');
    return { ...job, followUp: receiptOf(state, Date.now()) };
  } catch (error) {
    if (isCancellation(error)) {
      context.enter('cancelled');
      upsertMemo({ [MEMO_RECEIPT]: receiptOf(state, Date.now()) });
    } else if (error instanceof ApplicationFailure) {
      context.enter('failed');
    }
    throw error;
  } finally {
    context.over = true;
    await CancellationScope.nonCancellable(() => condition(allHandlersFinished));
  }
}

/**
 * The state from the run before; null for the input of a caller, even if it looks like a state. A run that a cron schedule
 * or a retry policy made has a run before it, and the input of its caller: half a character in an id would end the worker
 * (sdk-core 1.24).
 */
function continuedState(input: unknown): FollowUpState | null {
  const { continuedFromExecutionRunId, workflowId } = workflowInfo();
  if (continuedFromExecutionRunId === undefined) return null;
  if (!isRecord(input) || !isRecord(input.continued) || !isRecord(input.continued.plan)) return null;
  const { projectId, jobId, requestId } = input.continued.plan;
  const isOurs = checkRequest({ projectId, jobId, requestId, prompt: 'a message' }, workflowId).ok;
  return isOurs ? (input as unknown as ContinuedFollowUp).continued : null;
}

function checkedPlan(input: unknown): FollowUpPlan {
  const { workflowId } = workflowInfo();
  const checked = checkRequest(input, workflowId);
  if (checked.ok) return checked.plan;
  showInvalid();
  throw invalidRequest(checked.problems.map((problem) => problemText(problem)), workflowId);
}
