import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { BatchSummary } from '../../contract/batch';
import { BATCH_WORKFLOW, type BatchMemo, MEMO_PAGES, MEMO_SUMMARY } from '../../contract/batch-workflows';
import { isRecord } from '../../contract/field-reader';
import { batchWorkflowId, runOf } from '../../contract/workflow-id';
import { type FollowUpState, stateOf } from '../description';
import { BatchNotFoundError } from '../errors';
import { MEMO_ITEMS_DIGEST } from './memo';

/** What the Temporal server knows of a batch without asking a worker. */
export interface BatchDescription {
  readonly workflowId: string;
  readonly batchId: string;
  /** The run with which this batch began; it may be forgotten while a later one goes on. */
  readonly firstRunId: string;
  /** Tells the pages of this run of the batch from those of an earlier one. */
  readonly run: string;
  /** Null where the batch came with its items (a schedule's) and no worker has taken it up yet. */
  readonly pages: BatchMemo | null;
  readonly state: FollowUpState;
  readonly startedAt: string;
  /** Null while it runs. */
  readonly endedAt: string | null;
  readonly taskQueue: string;
  /** Null for a batch whose items came with its start. */
  readonly itemsDigest: string | null;
  /** Left by a cancelled batch only. */
  readonly summary: BatchSummary | null;
}

/** @returns null when there is no batch of this workflow id */
export async function describeBatch(client: Client, workflowId: string): Promise<BatchDescription | null> {
  try {
    const info = await client.workflow.getHandle(workflowId).describe();
    if (info.type !== BATCH_WORKFLOW) return null;
    const summary = info.memo?.[MEMO_SUMMARY];
    const digest = info.memo?.[MEMO_ITEMS_DIGEST];
    const memo = info.memo?.[MEMO_PAGES];
    const pages = isRecord(memo) ? (memo as unknown as BatchMemo) : null;
    const firstRunId = info.raw.workflowExecutionInfo?.firstRunId ?? info.runId;
    return {
      workflowId,
      batchId: pages?.batchId ?? workflowId.replace(/^follow-up-batch:/, ''),
      firstRunId,
      run: runOf(firstRunId),
      pages,
      state: stateOf(info.status.name),
      startedAt: info.startTime.toISOString(),
      endedAt: info.closeTime?.toISOString() ?? null,
      taskQueue: info.taskQueue,
      itemsDigest: typeof digest === 'string' ? digest : null,
      summary: isRecord(summary) ? (summary as unknown as BatchSummary) : null,
    };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

/**
 * Looks for a batch by its id, or by its workflow id: one that a schedule has started has a workflow id with the time in it.
 *
 * @returns null when there is none
 */
export async function lookForBatch(client: Client, batchId: string): Promise<BatchDescription | null> {
  const prefix = 'follow-up-batch:';
  const raw = batchId.startsWith(prefix) ? batchId : `${prefix}${batchId}`;
  return (await describeBatch(client, batchWorkflowId(batchId))) ?? (await describeBatch(client, raw));
}

/** As {@link lookForBatch}. @throws BatchNotFoundError */
export async function findBatch(client: Client, batchId: string): Promise<BatchDescription> {
  const found = await lookForBatch(client, batchId);
  if (found === null) throw new BatchNotFoundError(batchId, client.options.namespace);
  return found;
}
