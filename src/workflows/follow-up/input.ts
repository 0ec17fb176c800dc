import {
  type ApplicationFailure,
  metricMeter,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { checkRequest } from '../../contract/check-request';
import type { Problem } from '../../contract/checks';
import { recordMetric } from '../../contract/metrics';
import { MEMO_START_DELAY } from '../../contract/names';
import { keywordAttribute, outcomeAttribute } from '../../contract/follow-up-start-options';
import { MAX_DURATION_MS } from '../../contract/duration';
import { createInvalidRequestParts } from '../../follow-up/failure-details';
import { initialState, type RunStart } from '../../follow-up/initial-state';
import { type FollowUpState, isContinuedFollowUp } from '../../follow-up/state';
import { nonRetryableError } from '../non-retryable-error';
import { FollowUpRun } from './run';

/** Checks the input and makes the run. @throws ApplicationFailure `InvalidRequest` with the problems, before anything is sent */
export function acceptInput(input: unknown): FollowUpRun {
  const { workflowId, cronSchedule } = workflowInfo();
  const continued = readContinuedState(input);
  if (continued !== null) return new FollowUpRun(continued, null);

  const checked = checkRequest(input, workflowId);
  const problems = checked.ok ? [] : [...checked.problems];
  // All runs of a cron schedule would have the same workflow ID and would therefore be one follow-up, whose message is sent once.
  if (cronSchedule !== undefined)
    problems.push({
      field: 'cronSchedule',
      text: 'is not supported; use a Temporal Schedule instead',
    });
  if (checked.ok && problems.length === 0)
    return new FollowUpRun(initialState(checked.plan, readRunStart()), checked.plan.prompt);

  throw recordInvalidRequestError(problems);
}

/** Records the end of a workflow whose input is not a valid request, and returns the failure. */
function recordInvalidRequestError(problems: readonly Problem[]): ApplicationFailure {
  const { workflowId } = workflowInfo();
  const { message, details } = createInvalidRequestParts(problems, workflowId, readRunStart(), Date.now());
  recordMetric(metricMeter, 'ended', 1, { outcome: 'InvalidRequest', evidence: null });
  upsertSearchAttributes([
    keywordAttribute('FollowUpPhase', 'failed'),
    outcomeAttribute('InvalidRequest', details.receipt.delivery.verdict, null),
  ]);
  return nonRetryableError('InvalidRequest', message, details);
}

/** Returns the facts about the run's start. The start time includes the start delay that the client wrote into the memo. */
function readRunStart(): RunStart {
  const { runId, firstExecutionRunId, startTime, memo } = workflowInfo();
  const delay = memo?.[MEMO_START_DELAY];
  const delayMs = typeof delay === 'number' && delay > 0 && delay <= MAX_DURATION_MS ? delay : 0;
  return {
    startedAt: startTime.getTime() + delayMs,
    firstRunId: firstExecutionRunId,
    isReset: runId !== firstExecutionRunId,
  };
}

/**
 * Returns the state from the previous run; null for a caller's input. A run of a cron schedule or a retry policy has a caller's
 * input too. A state that belongs to another follow-up is not accepted.
 */
function readContinuedState(input: unknown): FollowUpState | null {
  const { continuedFromExecutionRunId, workflowId } = workflowInfo();
  if (continuedFromExecutionRunId === undefined || !isContinuedFollowUp(input)) return null;
  const { projectId, jobId, requestId } = input.continued.plan;
  const requestIdField = requestId === workflowId ? {} : { requestId };
  const isOwnState = checkRequest(
    { projectId, jobId, ...requestIdField, prompt: 'a message' },
    workflowId,
  ).ok;
  return isOwnState ? input.continued : null;
}
