import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { BatchSummary } from '../../core/batch';
import {
  BATCH_WORKFLOW,
  type BatchMemo,
  type BatchProgress,
  MEMO_PAGES,
  MEMO_SUMMARY,
  QUERY_BATCH_PROGRESS,
} from '../../core/batch-workflows';
import { isRecord } from '../../core/json';
import { batchIdOf, batchWorkflowId, runOf } from '../../core/ids';
import { workersPolling } from '../../temporal/sdk-internals';
import { type RunState, stateOf } from '../../temporal/existing-run';
import { visibilityQuery } from '../list';
import { type ProgressOptions, QUERY_TIMEOUT_MS } from '../progress';
import { attribute } from '../start';
import { batchNotFound } from '../errors';

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
  readonly state: RunState;
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
  const raw = batchId.startsWith('follow-up-batch:') ? batchId : `follow-up-batch:${batchId}`;
  const encoded = batchWorkflowId(batchIdOf(batchId));
  return (await describeBatch(client, encoded)) ?? (raw === encoded ? null : describeBatch(client, raw));
}

/** As {@link lookForBatch}. @throws NotFoundError */
export async function findBatch(client: Client, batchId: string): Promise<BatchDescription> {
  const found = await lookForBatch(client, batchId);
  if (found === null) throw batchNotFound(batchId, client.options.namespace);
  return found;
}

/** Who tells where a batch stands. */
export type BatchReport =
  | { readonly from: 'worker'; readonly progress: BatchProgress }
  | {
      /** No worker answered in time; this is what the server knows. */
      readonly from: 'server';
      readonly description: BatchDescription;
      /** Workers that poll the task queue of the batch. With none, the batch waits; nothing is lost. */
      readonly workers: number;
      /** Its follow-ups by state; null for a batch id that no query can hold. Items that were not started are not in it. */
      readonly followUps: ItemStates | null;
    };

/** How many follow-ups of a batch are in each state. */
export type ItemStates = Readonly<Partial<Record<RunState, number>>>;

/** The server's own answers need no worker. */
const CALL_TIMEOUT_MS = 5_000;

/**
 * Where a batch stands: by its worker; by the server alone when no worker answers in time.
 *
 * @throws NotFoundError; ServiceError when the server does not answer either
 */
export async function readBatchReport(
  client: Client,
  batchId: string,
  { timeoutMs = QUERY_TIMEOUT_MS }: ProgressOptions = {},
): Promise<BatchReport> {
  const description = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
    findBatch(client, batchId),
  );
  try {
    const handle = client.workflow.getHandle(description.workflowId);
    const progress = await client.withDeadline(Date.now() + timeoutMs, () =>
      handle.query<BatchProgress>(QUERY_BATCH_PROGRESS),
    );
    return { from: 'worker', progress };
  } catch {
    // No worker, or a busy one; when the server does not answer either, its error is thrown from here.
    const workers = await workersPolling(client, description.taskQueue, CALL_TIMEOUT_MS);
    const followUps = await countItems(client, description.batchId);
    return { from: 'server', description, workers: workers.length, followUps };
  }
}

/**
 * How many follow-ups of a batch are in each state, by the server's visibility store, which is eventually consistent.
 * Items that were not started are not in it.
 *
 * @returns null for a batch id that no query can hold
 */
async function countItems(client: Client, batchId: string): Promise<ItemStates | null> {
  const query = visibilityQuery([['FollowUpBatch', attribute(batchId)]]);
  // Anything else finds too much.
  if (!query.includes('FollowUpBatch = ')) return null;
  const { groups } = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
    client.workflow.count(`${query} GROUP BY ExecutionStatus`),
  );
  const counts: Partial<Record<RunState, number>> = {};
  for (const { count, groupValues } of groups) {
    const state = stateOf(STATUS_OF_WORD[String(groupValues[0])] ?? 'UNKNOWN');
    counts[state] = (counts[state] ?? 0) + count;
  }
  return counts;
}

/** The visibility store names a status by another word than the SDK. */
const STATUS_OF_WORD: Readonly<Record<string, Parameters<typeof stateOf>[0]>> = {
  Running: 'RUNNING',
  Completed: 'COMPLETED',
  Failed: 'FAILED',
  Canceled: 'CANCELLED',
  Terminated: 'TERMINATED',
  ContinuedAsNew: 'CONTINUED_AS_NEW',
  TimedOut: 'TIMED_OUT',
};

/** Where a batch leaves the digest of its items, by which the same batch is told from another one of the same id. */
export const MEMO_ITEMS_DIGEST = 'followUpBatchItemsSha256';
