import { type Client, WorkflowFailedError, WorkflowNotFoundError } from '@temporalio/client';
import { ValueError } from '@temporalio/common';
import {
  type RecordedOutcome,
  outcomeFromFailure,
  outcomeFromMemo,
  outcomeFromResult,
  createOutcomeWithoutReceipt,
} from '../contract/outcome';
import { FOLLOW_UP_WORKFLOW, MEMO_PROMPT_DIGEST, MEMO_RECEIPT } from '../contract/names';
import { type FollowUpResult, isReceipt, type Receipt } from '../contract/result';
import type { FollowUpReference } from '../contract/activities';
import { keywordAttributeKey } from '../contract/follow-up-start-options';
import { describeWorkflow, readPromptDigest, toRunState } from './workflow-executions';
import { findGrpcError } from './grpc-status';
import { undecodedClient } from './visibility';
import { decodeFirstPayload } from './raw-requests';

/** The outcome of a follow-up and further facts from the Temporal server. */
export interface FollowUpLookup {
  /**
   * Null while a follow-up with this prompt runs, and if a codec fails. The outcome is `missing` if no workflow has this ID, and
   * `unreadable` if no later call can decode it. The outcomes `conflict` and `unreadable` are possible while the follow-up runs.
   */
  readonly outcome: RecordedOutcome | null;
  /** The outcome `unreadable` with its reason, if the follow-up has ended and a codec fails now. A later call may succeed. */
  readonly unreadableOutcome?: RecordedOutcome;
  /** The result, if it was read. The result is read only if `shouldIncludeResult` is true or the memo has no outcome. */
  readonly result?: FollowUpResult;
  /** The workflow's failure, or the error of the decoding. */
  readonly failure?: Error;
  /** The receipt of a cancelled follow-up, if it has one. */
  readonly receipt?: Receipt;
  readonly runId?: string;
  /** When the latest run was started, in milliseconds since the epoch, by the Temporal server's clock. */
  readonly startedAt?: number;
  /** When the latest run ended, ISO 8601, UTC. */
  readonly closedAt?: string | undefined;
  /** The batch that started the follow-up. */
  readonly batchId?: string | undefined;
}

/** Reads the outcome of a follow-up from the Temporal server. The outcome is `conflict` if the follow-up has another prompt. */
export async function fetchOutcome(client: Client, followUp: FollowUpReference): Promise<FollowUpLookup> {
  const { workflowId, promptDigest, shouldIncludeResult = false } = followUp;
  const description = await describeWorkflow(undecodedClient(client), workflowId);
  if (description === null) return { outcome: createOutcomeWithoutReceipt('missing') };
  const { runId, startTime, typedSearchAttributes, raw } = description;
  const state = toRunState(description.status.name);
  const facts = {
    runId,
    startedAt: startTime.getTime(),
    closedAt: description.closeTime?.toISOString(),
    batchId: typedSearchAttributes.get(keywordAttributeKey('FollowUpBatch')),
  };
  const readMemo = async (name: string): Promise<unknown> => {
    const payload = raw.workflowExecutionInfo?.memo?.fields?.[name];
    return payload && decodeFirstPayload(client, [payload], workflowId);
  };
  try {
    const memo = { [MEMO_PROMPT_DIGEST]: await readMemo(MEMO_PROMPT_DIGEST) };
    const isFollowUp = description.type === FOLLOW_UP_WORKFLOW;
    if (!isFollowUp || (await readPromptDigest(client, { ...description, memo })) !== promptDigest)
      return { outcome: createOutcomeWithoutReceipt('conflict'), ...facts };
    if (state === 'running') return { outcome: null, ...facts };
    if (state === 'terminated' || state === 'timed-out')
      return { outcome: createOutcomeWithoutReceipt(state), ...facts };
    const receipt = await readMemo(MEMO_RECEIPT);
    const outcome = outcomeFromMemo(receipt);
    if (state === 'cancelled') {
      const cancelled = outcome ?? createOutcomeWithoutReceipt('cancelled');
      return { outcome: cancelled, ...(isReceipt(receipt) && { receipt }), ...facts };
    }
    if (outcome !== null && !shouldIncludeResult) return { outcome, ...facts };
    // `followRuns: false` prevents waiting for a later run that another client may have started.
    const run = client.workflow.getHandle(workflowId, runId, { followRuns: false });
    const result = (await run.result()) as FollowUpResult;
    return { outcome: outcomeFromResult(result), result, ...facts };
  } catch (error) {
    if (error instanceof WorkflowFailedError) {
      const failure = error.cause ?? error;
      return { outcome: outcomeFromFailure(failure), failure, ...facts };
    }
    if (error instanceof WorkflowNotFoundError) return { outcome: createOutcomeWithoutReceipt('missing') };
    if (findGrpcError(error) !== undefined) throw error;
    const failure = error instanceof Error ? error : new Error(String(error));
    const message = `The data converter of this process can't decode the follow-up: ${failure.message}`;
    const unreadable = createOutcomeWithoutReceipt('unreadable', message);
    // A ValueError means that this data converter does not support the encoding, so another attempt would fail too.
    if (error instanceof ValueError) return { outcome: unreadable, failure, ...facts };
    if (state === 'running') return { outcome: null, ...facts };
    return { outcome: null, unreadableOutcome: unreadable, failure, ...facts };
  }
}
