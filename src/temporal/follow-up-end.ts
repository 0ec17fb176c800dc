import {
  type Client,
  type WorkflowExecutionDescription,
  WorkflowFailedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import {
  type End,
  endOfCancelled,
  endOfConflict,
  endOfFailure,
  endOfMemo,
  endOfResult,
  endWithoutReceipt,
} from '../core/end';
import { FOLLOW_UP_WORKFLOW, MEMO_RECEIPT } from '../core/names';
import { type FollowUpResult, isReceipt, type Receipt } from '../core/result';
import type { NamedFollowUp } from '../core/activities';
import { keywordKey } from '../core/starts';
import { promptDigestOf, stateOf } from './existing-run';
import { grpcError } from './grpc-status';

/** A follow-up as the server knows it. */
export interface FoundFollowUp {
  /** Null while it runs; `gone` where there is none of this name. */
  readonly end: End | null;
  readonly result?: FollowUpResult;
  readonly failure?: Error;
  /** Where it was cancelled and left one. */
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
  let found: Omit<FoundFollowUp, 'end'> = {};
  try {
    const description = await client.workflow.getHandle(workflowId).describe();
    const { runId, startTime, typedSearchAttributes } = description;
    const state = stateOf(description.status.name);
    found = {
      runId,
      startedAt: startTime.getTime(),
      closedAt: description.closeTime?.toISOString(),
      batchId: typedSearchAttributes.get(keywordKey('FollowUpBatch')),
    };
    const conflict = await conflictOf(client, followUp, description);
    if (conflict !== null) return { end: conflict, ...found };
    if (state === 'running') return { end: null, ...found };
    if (state === 'terminated' || state === 'timed-out') return { end: endWithoutReceipt(state), ...found };
    const receipt = description.memo?.[MEMO_RECEIPT];
    if (state === 'cancelled')
      return { end: endOfCancelled(receipt), ...(isReceipt(receipt) && { receipt }), ...found };
    const end = endOfMemo(receipt);
    if (end !== null && !wantsResult) return { end, ...found };
    // A run that somebody has started meanwhile is not waited for.
    const run = client.workflow.getHandle(workflowId, runId, { followRuns: false });
    const result = (await run.result()) as FollowUpResult;
    return { end: endOfResult(result), result, ...found };
  } catch (error) {
    if (error instanceof WorkflowFailedError) {
      const failure = error.cause ?? error;
      return { end: endOfFailure(failure), failure, ...found };
    }
    if (error instanceof WorkflowNotFoundError) return { end: endWithoutReceipt('gone') };
    if (grpcError(error) !== undefined) throw error;
    // Another program's memo, result or failure that can't be decoded never will be.
    const failure = error instanceof Error ? error : new Error(String(error));
    const words = `It can't be read, another data converter wrote it: ${failure.message}`;
    return { end: endWithoutReceipt('broken', words), failure, ...found };
  }
}

/** Compares what the follow-up was asked to send with what is meant; null for the same. */
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
