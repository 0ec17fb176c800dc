import {
  allHandlersFinished,
  CancelledFailure,
  condition,
  metricMeter,
  sleep,
  upsertMemo,
  workflowInfo,
} from '@temporalio/workflow';
import type { WorkerSettings } from '../../contract/activities';
import {
  type RecordedOutcome,
  createOutcomeWithoutReceipt,
  outcomeFromFailure,
  outcomeFromResult,
  toOutcomeMemo,
} from '../../contract/outcome';
import { recordMetric } from '../../contract/metrics';
import { MEMO_RECEIPT } from '../../contract/names';
import type { FollowUpResult, Receipt } from '../../contract/result';
import { keywordAttributeKey } from '../../contract/follow-up-start-options';
import { toFailureParts, toOutcomeName } from '../../follow-up/failure-details';
import { toReceipt } from '../../follow-up/receipt';
import type { FollowUpEnd } from '../../follow-up/step';
import { nonRetryableError } from '../non-retryable-error';
import { notifyOfFollowUp } from '../notification';
import { showOutcome } from './display';
import { releaseLock } from './wait-for-job-lock';
import type { FollowUpRun } from './run';

/**
 * Ends a follow-up: notifies the receiver, releases the job lock, and records the outcome in the same workflow task that returns
 * it. If a reset makes a new run from this task, the new run records the outcome again.
 */
export async function endFollowUp(
  run: FollowUpRun,
  outcome: FollowUpEnd,
  settings: WorkerSettings,
): Promise<FollowUpResult> {
  const { state, step } = run;
  const name = toOutcomeName(outcome);
  await notifyOfFollowUp(state, outcome, settings);
  await releaseLock(state);
  // The timer makes the next workflow task end the run, see `shouldDeferRunEnd`.
  if (run.shouldDeferRunEnd) await sleep(1);
  await condition(allHandlersFinished);

  const receipt = toReceipt(state, Date.now());
  recordMetric(metricMeter, 'ended', 1, { outcome: name, evidence: receipt.evidence });
  showOutcome(state, step.phase, name);
  switch (outcome.kind) {
    case 'result': {
      const result = { ...outcome.job, receipt };
      writeMemo(receipt, outcomeFromResult(result));
      return result;
    }
    case 'failure': {
      const { type, message, details } = toFailureParts(outcome, state.job, receipt);
      const error = nonRetryableError(type, message, details);
      writeMemo(receipt, outcomeFromFailure(error));
      throw error;
    }
    case 'cancelled':
      writeMemo(receipt, createOutcomeWithoutReceipt('cancelled'), true);
      throw new CancelledFailure('The follow-up was cancelled.');
  }
}

/**
 * Writes the receipt and the outcome to the memo. A cancelled follow-up has no other place for its receipt, and visibility lists
 * return the outcome of a batch item from its memo.
 */
function writeMemo(receipt: Receipt, recordedOutcome: RecordedOutcome, isCancelled = false): void {
  const isItem = workflowInfo().typedSearchAttributes.get(keywordAttributeKey('FollowUpBatch')) !== undefined;
  if (isCancelled || isItem) upsertMemo({ [MEMO_RECEIPT]: toOutcomeMemo(receipt, recordedOutcome) });
}
