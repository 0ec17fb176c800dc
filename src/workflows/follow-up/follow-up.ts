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
import { type FollowUpResult, outcomeText, type Phase, type Receipt } from '../../core/result';
import { keyword, keywordKey } from '../../core/starts';
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
  let ended = null as string | null;
  const decided = () => {
    if (!isDecided) measure(metricMeter, 'deliveries', 1, { verdict: told(state).verdict });
    isDecided = true;
  };
  const end = (phase: Phase, outcome: string, endOf: (receipt: Receipt) => End): Receipt => {
    context.enter(phase, outcome);
    decided();
    ended = outcome;
    measure(metricMeter, 'ends', 1, { outcome, evidence: state.evidence });
    const receipt = receiptOf(state, Date.now());
    // A cancelled one leaves nothing else; how an item of a batch ended is shown by a list of the server.
    const isItem = workflowInfo().typedSearchAttributes.get(keywordKey('FollowUpBatch')) !== undefined;
    if (phase === 'cancelled' || isItem) upsertMemo({ [MEMO_RECEIPT]: memoOfEnd(receipt, endOf(receipt)) });
    return receipt;
  };
  try {
    context.show();
    receiveOperators(context);
    state.settings = await workerSettings();
    if (prompt !== undefined) await deliver(context, prompt);
    decided();
    if (state.watch === null) throw new TypeError('a follow-up is watched before its message was delivered');
    const job = await watchJob(context, state.watch);
    const followUp = end('done', job.status, (receipt) => endOfResult({ ...job, followUp: receipt }));
    return { ...job, followUp };
  } catch (error) {
    if (isCancellation(error)) end('cancelled', 'cancelled', endOfCancelled);
    else if (error instanceof ApplicationFailure)
      end('failed', error.type ?? 'other', () => endOfFailure(error));
    throw error;
  } finally {
    // A run that continues as new has not ended.
    const outcome = ended;
    if (outcome !== null)
      await CancellationScope.nonCancellable(() => context.end(() => tellOf(state, outcome)));
  }
}

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
  // A reset has made this run, or a worker of another version has handed over what this one does not know.
  const delivery = told({ delivery: NOT_SENT, isReset: isReset() });
  const outcome = outcomeText('InvalidRequest', delivery.verdict);
  upsertSearchAttributes([keyword('FollowUpPhase', 'failed'), keyword('FollowUpOutcome', outcome)]);
  throw invalidRequest(problems, workflowId, delivery);
}
