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
import { type End, endOfCancelled, endOfFailure, endOfResult, memoOfEnd } from '../../contract/outcome';
import { measure } from '../../contract/metrics';
import { MEMO_RECEIPT } from '../../contract/names';
import type { FollowUpResult, Receipt } from '../../contract/result';
import { keywordKey } from '../../contract/follow-up-start';
import { failureWithReceipt, outcomeName } from '../../follow-up/failure-details';
import { receiptOf } from '../../follow-up/receipt';
import type { FollowUpOutcome } from '../../follow-up/step';
import { failure } from '../failure';
import { notifyOfFollowUp } from '../notification';
import { showOutcome } from './display';
import { releaseLock } from './wait-for-job-lock';
import type { FollowUpRun } from './run';

/**
 * Ends a follow-up: notifies the receiver, releases the job lock, and records the outcome in the same workflow task that returns
 * it. A run that a reset made to its last task then records the outcome again.
 */
export async function endFollowUp(
  run: FollowUpRun,
  outcome: FollowUpOutcome,
  settings: WorkerSettings,
): Promise<FollowUpResult> {
  const { state } = run;
  const name = outcomeName(outcome);
  await notifyOfFollowUp(state, name, settings);
  await releaseLock(state);
  if (run.isTouched) await sleep(1);
  await condition(allHandlersFinished);

  const receipt = receiptOf(state, Date.now());
  measure(metricMeter, 'ended', 1, { outcome: name, evidence: receipt.evidence });
  showOutcome(run, name);
  switch (outcome.kind) {
    case 'result': {
      const result = { ...outcome.job, receipt };
      writeMemo(receipt, endOfResult(result));
      return result;
    }
    case 'failure': {
      const { type, message, details } = failureWithReceipt(outcome, state.job, receipt);
      const error = failure(type, message, details);
      writeMemo(receipt, endOfFailure(error));
      throw error;
    }
    case 'cancelled':
      writeMemo(receipt, endOfCancelled(receipt), true);
      throw new CancelledFailure('The follow-up was cancelled.');
  }
}

/** A cancelled follow-up leaves nothing else, and the visibility list shows the outcome of a batch item. */
function writeMemo(receipt: Receipt, end: End, isCancelled = false): void {
  const isItem = workflowInfo().typedSearchAttributes.get(keywordKey('FollowUpBatch')) !== undefined;
  if (isCancelled || isItem) upsertMemo({ [MEMO_RECEIPT]: memoOfEnd(receipt, end) });
}
