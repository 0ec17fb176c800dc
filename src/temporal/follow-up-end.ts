import {
  type Client,
  WorkflowClient,
  type WorkflowExecutionDescription,
  WorkflowFailedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { ValueError } from '@temporalio/common';
import {
  type End,
  endOfCancelled,
  endOfConflict,
  endOfFailure,
  endOfMemo,
  endOfResult,
  endWithoutReceipt,
} from '../contract/outcome';
import { FOLLOW_UP_WORKFLOW, MEMO_PROMPT_DIGEST, MEMO_RECEIPT } from '../contract/names';
import { type FollowUpResult, isReceipt, type Receipt } from '../contract/result';
import type { NamedFollowUp } from '../contract/activities';
import { keywordKey } from '../contract/follow-up-start';
import { describeWorkflow, promptDigestOf, stateOf } from './existing-run';
import { grpcError } from './grpc-status';
import { withoutDecoding } from './lists';
import { decodeFirst } from './sdk-internals';

/** A follow-up as the Temporal server has it. */
export interface FoundFollowUp {
  /** Null while the follow-up runs or can't be read; `missing` if no follow-up has this ID. */
  readonly end: End | null;
  /** The outcome `unreadable` with its reason, if the follow-up has ended and a codec fails. The codec may recover. */
  readonly trouble?: End;
  readonly result?: FollowUpResult;
  readonly failure?: Error;
  /** The receipt of a cancelled follow-up, if it has one. */
  readonly receipt?: Receipt;
  readonly runId?: string;
  /** When its latest run began, in milliseconds since the epoch by the server's clock. */
  readonly startedAt?: number;
  /** ISO 8601, UTC. */
  readonly closedAt?: string | undefined;
  /** The batch that has started it. */
  readonly batchId?: string | undefined;
}

/** Asks the server how a follow-up has ended, and whether it is the one that was meant. */
export async function findEnd(client: Client, followUp: NamedFollowUp): Promise<FoundFollowUp> {
  const { workflowId, wantsResult = false } = followUp;
  const workflow = new WorkflowClient(withoutDecoding(client));
  const description = await describeWorkflow({ workflow }, workflowId);
  if (description === null) return { end: endWithoutReceipt('missing') };
  const { runId, startTime, typedSearchAttributes, raw } = description;
  const state = stateOf(description.status.name);
  const found = {
    runId,
    startedAt: startTime.getTime(),
    closedAt: description.closeTime?.toISOString(),
    batchId: typedSearchAttributes.get(keywordKey('FollowUpBatch')),
  };
  const inMemo = async (name: string): Promise<unknown> => {
    const payload = raw.workflowExecutionInfo?.memo?.fields?.[name];
    return payload && decodeFirst(client, [payload], workflowId);
  };
  try {
    const memo = { [MEMO_PROMPT_DIGEST]: await inMemo(MEMO_PROMPT_DIGEST) };
    const conflict = await conflictOf(client, followUp, { ...description, memo });
    if (conflict !== null) return { end: conflict, ...found };
    if (state === 'running') return { end: null, ...found };
    if (state === 'terminated' || state === 'timed-out') return { end: endWithoutReceipt(state), ...found };
    const receipt = await inMemo(MEMO_RECEIPT);
    if (state === 'cancelled')
      return { end: endOfCancelled(receipt), ...(isReceipt(receipt) && { receipt }), ...found };
    const end = endOfMemo(receipt);
    if (end !== null && !wantsResult) return { end, ...found };
    // The call does not wait for a run that another client started in the meantime.
    const run = client.workflow.getHandle(workflowId, runId, { followRuns: false });
    const result = (await run.result()) as FollowUpResult;
    return { end: endOfResult(result), result, ...found };
  } catch (error) {
    if (error instanceof WorkflowFailedError) {
      const failure = error.cause ?? error;
      return { end: endOfFailure(failure), failure, ...found };
    }
    if (error instanceof WorkflowNotFoundError) return { end: endWithoutReceipt('missing') };
    if (grpcError(error) !== undefined) throw error;
    const failure = error instanceof Error ? error : new Error(String(error));
    const words = `It can't be read by this data converter: ${failure.message}`;
    const broken = endWithoutReceipt('unreadable', words);
    // The converter of this process does not have this encoding, so another attempt does not help.
    if (error instanceof ValueError) return { end: broken, failure, ...found };
    if (state === 'running') return { end: null, ...found };
    return { end: null, trouble: broken, failure, ...found };
  }
}

/** Compares the follow-up's prompt with the expected one; null if they are the same. */
async function conflictOf(
  client: Client,
  { promptDigest: wanted, foreignBefore = 0 }: NamedFollowUp,
  found: WorkflowExecutionDescription,
): Promise<End | null> {
  const isForeign = found.startTime.getTime() < foreignBefore;
  if (found.type !== FOLLOW_UP_WORKFLOW) return endOfConflict(true, isForeign);
  const digest = await promptDigestOf(client, found);
  return digest === wanted ? null : endOfConflict(digest !== undefined, isForeign);
}
