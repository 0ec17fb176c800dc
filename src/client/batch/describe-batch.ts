import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import { type BatchSummary, itemProblems } from '../../core/batch/batch';
import {
  BATCH_WORKFLOW,
  type BatchInput,
  type BatchMemo,
  type BatchPage,
  type BatchProgress,
  MEMO_PAGES,
  MEMO_SUMMARY,
  type PageInput,
  QUERY_BATCH_PROGRESS,
} from '../../core/batch/workflows';
import { isRecord } from '../../core/checks';
import { batchIdOf, batchWorkflowId, runOf } from '../../core/ids';
import { keyword } from '../../core/starts';
import { workersPolling } from '../../temporal/sdk-internals';
import { describeWorkflow, firstRunOf, readInput, type RunState, stateOf } from '../../temporal/existing-run';
import { visibilityQuery } from '../description';
import { SERVER_LIMIT_MS, within, WORKER_LIMIT_MS } from '../call';
import { notFound } from '../errors';

/** What the Temporal server knows of a batch without asking a worker. */
export interface BatchDescription {
  readonly workflowId: string;
  readonly batchId: string;
  /** The run with which this batch began; it may be forgotten while a later one goes on. */
  readonly firstRunId: string;
  /** Tells the pages of this run of the batch from those of an earlier one. */
  readonly run: string;
  /** Its memo is as old as the point to which it was reset, until a worker has taken it up. */
  readonly wasReset: boolean;
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

/** Looks for a batch by its id, or by its workflow id, which holds the time if a schedule has started it; else null. */
export async function lookForBatch(client: Client, batchId: string): Promise<BatchDescription | null> {
  const raw = batchId.startsWith('follow-up-batch:') ? batchId : `follow-up-batch:${batchId}`;
  for (const workflowId of new Set([batchWorkflowId(batchIdOf(batchId)), raw])) {
    const info = await describeWorkflow(client, workflowId);
    if (info?.type === BATCH_WORKFLOW) return descriptionOf(info);
  }
  return null;
}

function descriptionOf(info: WorkflowExecutionDescription): BatchDescription {
  const { workflowId, memo = {}, raw } = info;
  const summary = memo[MEMO_SUMMARY];
  const digest = memo[MEMO_ITEMS_DIGEST];
  const pages = isRecord(memo[MEMO_PAGES]) ? (memo[MEMO_PAGES] as unknown as BatchMemo) : null;
  const firstRunId = firstRunOf(info);
  return {
    workflowId,
    batchId: pages?.batchId ?? workflowId.replace(/^follow-up-batch:/, ''),
    firstRunId,
    run: runOf(firstRunId),
    wasReset: Boolean(raw.workflowExtendedInfo?.lastResetTime),
    pages,
    state: stateOf(info.status.name),
    startedAt: info.startTime.toISOString(),
    endedAt: info.closeTime?.toISOString() ?? null,
    taskQueue: info.taskQueue,
    itemsDigest: typeof digest === 'string' ? digest : null,
    summary: isRecord(summary) ? (summary as unknown as BatchSummary) : null,
  };
}

/** @throws NotFoundError */
export async function findBatch(client: Client, batchId: string): Promise<BatchDescription> {
  const found = await lookForBatch(client, batchId);
  if (found === null) throw notFound('batch', batchId, client.options.namespace);
  return found;
}

/** Where a batch stands, and who says so. */
export type BatchReport = { readonly description: BatchDescription } & (
  | { readonly from: 'worker'; readonly progress: BatchProgress }
  | {
      /** No worker answered in time; this is what the server knows. */
      readonly from: 'server';
      /** Workers that poll the task queue of the batch. With none, the batch waits; nothing is lost. */
      readonly workers: number;
      /** Its follow-ups by state; null for a batch id that no query can hold. Items that were not started are not in it. */
      readonly followUps: ItemStates | null;
    }
);

/** How many follow-ups of a batch are in each state, by Temporal's words: `Running`, `Completed`, … */
export type ItemStates = Readonly<Record<string, number>>;

export async function reportOf(client: Client, batch: string): Promise<BatchReport> {
  const description = await within(client, SERVER_LIMIT_MS, () => findBatch(client, batch));
  const { batchId, workflowId, taskQueue } = description;
  try {
    const query = () => client.workflow.getHandle(workflowId).query<BatchProgress>(QUERY_BATCH_PROGRESS);
    const progress = await within(client, WORKER_LIMIT_MS, query);
    return { from: 'worker', description, progress };
  } catch {
    // No worker, or a busy one; when the server does not answer either, its error is thrown from here.
    const workers = await workersPolling(client, taskQueue);
    const followUps = await countItems(client, batchId);
    return { from: 'server', description, workers: workers.length, followUps };
  }
}

/** By the server's visibility store, which is eventually consistent. */
async function countItems(client: Client, batchId: string): Promise<ItemStates | null> {
  const query = visibilityQuery([keyword('FollowUpBatch', batchId)]);
  // Anything else finds too much.
  if (!query.includes('FollowUpBatch = ')) return null;
  const count = () => client.workflow.count(`${query} GROUP BY ExecutionStatus`);
  const { groups } = await within(client, SERVER_LIMIT_MS, count);
  return Object.fromEntries(groups.map(({ count, groupValues: [status] }) => [String(status), count]));
}

/** Where a batch leaves the digest of its items, which shows whether a batch of the same id is the same batch. */
export const MEMO_ITEMS_DIGEST = 'followUpBatchItemsSha256';

/** What a batch was started with, by whichever client; without items if they are invalid; null if the server has forgotten it. */
export async function inputOfBatch(
  client: Client,
  { workflowId, firstRunId, batchId }: BatchDescription,
): Promise<BatchInput | null> {
  const run = await readInput(client, workflowId, firstRunId);
  if (!isRecord(run?.input)) return null;
  const { items, ...rest } = run.input;
  const areItems = Array.isArray(items) && itemProblems(items, batchId).length === 0;
  return areItems ? { ...rest, items } : rest;
}

/** Null if it does not exist. */
export async function pageWithItems(client: Client, workflowId: string): Promise<BatchPage | null> {
  const run = await readInput(client, workflowId, '');
  return isRecord(run?.input) ? (run.input as unknown as PageInput).page : null;
}
