import {
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  metricMeter,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { checkRequest } from '../../core/check-request';
import { type End, endOfCancelled, endOfFailure, endOfResult, memoOfEnd } from '../../core/end';
import { measure } from '../../core/metrics';
import { MEMO_RECEIPT } from '../../core/names';
import type { FollowUpPlan, FollowUpRequest } from '../../core/request';
import { type FollowUpResult, outcomeText, type Receipt } from '../../core/result';
import { keyword } from '../../core/starts';
import { workerSettings } from '../activity-proxies';
import { tellOf } from '../notice';
import { FollowUpContext } from './context';
import { deliver } from './deliver';
import { invalidRequest } from './failures';
import { receiveOperators } from './operator';
import {
  type ContinuedFollowUp,
  type FollowUpState,
  initialState,
  isContinued,
  NOT_SENT,
  receiptOf,
  told,
} from './state';
import { watchJob } from './watch';

/**
 * Sends one message to an agent job, once, and waits for the job durably: docs/architecture.md tells the story,
 * docs/guarantees.md what holds when something fails.
 *
 * @returns the final job with its `prLink`, and the receipt that says how we know
 * @throws ApplicationFailure non-retryable, of a type in `FAILURE_TYPES`, with `FailureDetails` as its first detail
 */
export async function followUp(input: FollowUpRequest | ContinuedFollowUp): Promise<FollowUpResult> {
  const continued = continuedState(input);
  if (continued !== null) return follow(new FollowUpContext(continued));
  const plan = checkedPlan(input);
  // The deadline does not count from the workflow's start: a start delay or a cron schedule may lie between.
  const state = initialState(plan, Date.now(), isReset());
  return follow(new FollowUpContext(state), plan.prompt);
}

/** One run from its first step to its end. Without a prompt it can only watch. */
async function follow(context: FollowUpContext, prompt?: string): Promise<FollowUpResult> {
  const { state } = context;
  let isDecided = prompt === undefined;
  let end: string | null = null;
  const decided = () => {
    if (!isDecided) measure(metricMeter, 'deliveries', 1, { verdict: told(state).verdict });
    isDecided = true;
  };
  const ended = (outcome: string | null | undefined) => {
    decided();
    end = outcome ?? 'other';
    measure(metricMeter, 'ends', 1, { outcome: outcome ?? null, evidence: state.evidence });
  };
  try {
    context.show();
    receiveOperators(context);
    state.settings = await workerSettings();
    if (prompt !== undefined) await deliver(context, prompt);
    decided();
    if (state.watch === null) throw new TypeError('a follow-up is watched before its message was delivered');
    const job = await watchJob(context, state.watch);
    context.enter('done', job.status);
    ended(job.status);
    const result = { ...job, followUp: receiptOf(state, Date.now()) };
    leaveEnd(result.followUp, endOfResult(result));
    return result;
  } catch (error) {
    if (isCancellation(error)) {
      context.enter('cancelled', 'cancelled');
      ended('cancelled');
      const receipt = receiptOf(state, Date.now());
      upsertMemo({ [MEMO_RECEIPT]: memoOfEnd(receipt, endOfCancelled(receipt)) });
    } else if (error instanceof ApplicationFailure) {
      context.enter('failed', error.type ?? 'other');
      ended(error.type);
      leaveEnd(receiptOf(state, Date.now()), endOfFailure(error));
    }
    throw error;
  } finally {
    context.over = true;
    await CancellationScope.nonCancellable(async () => {
      if (end !== null) await tellOf(state, end);
      await context.mayEnd();
    });
  }
}

/** An item of a batch leaves how it ended where a list of the server shows it; for any other one it would be an event too many. */
function leaveEnd(receipt: Receipt, end: End): void {
  const ofBatch = keyword('FollowUpBatch', '').key;
  if (workflowInfo().typedSearchAttributes.get(ofBatch) === undefined) return;
  upsertMemo({ [MEMO_RECEIPT]: memoOfEnd(receipt, end) });
}

/** Whether another run of this follow-up came before, which may have sent: a reset has made this one, or it was continued. */
function isReset(): boolean {
  const { runId, firstExecutionRunId } = workflowInfo();
  return runId !== firstExecutionRunId;
}

/** The state from the run before; null for a caller's input, which a run by a cron schedule or a retry policy has too. */
function continuedState(input: unknown): FollowUpState | null {
  const { continuedFromExecutionRunId, workflowId } = workflowInfo();
  if (continuedFromExecutionRunId === undefined || !isContinued(input)) return null;
  const { plan, watch } = input.continued;
  const { projectId, jobId, requestId } = plan;
  const named = requestId === workflowId ? {} : { requestId };
  const isOurs = checkRequest({ projectId, jobId, ...named, prompt: 'a message' }, workflowId).ok;
  // A run continues as new in its watch only.
  return isOurs && watch !== null ? input.continued : null;
}

function checkedPlan(input: unknown): FollowUpPlan {
  const { workflowId, cronSchedule } = workflowInfo();
  const checked = checkRequest(input, workflowId);
  const problems = checked.ok ? [] : [...checked.problems];
  // Each of its runs would be a follow-up of the same name, of which the service gets one.
  if (cronSchedule !== undefined)
    problems.push({
      field: 'cronSchedule',
      text: 'is for work that is repeated; use a Temporal Schedule instead',
    });
  if (checked.ok && problems.length === 0) return checked.plan;
  measure(metricMeter, 'ends', 1, { outcome: 'InvalidRequest', evidence: null });
  // The run before may have sent it: a reset has made this one, or a worker of another version has handed over what this
  // one does not know.
  const delivery = told({ delivery: NOT_SENT, isReset: isReset() });
  const outcome = outcomeText('InvalidRequest', delivery.verdict);
  // Filters find it.
  upsertSearchAttributes([keyword('FollowUpPhase', 'failed'), keyword('FollowUpOutcome', outcome)]);
  throw invalidRequest(problems, workflowId, delivery);
}
