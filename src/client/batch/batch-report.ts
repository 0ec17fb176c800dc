import type { Client } from '@temporalio/client';
import { type BatchProgress, QUERY_BATCH_PROGRESS } from '../../contract/batch-workflows';
import { visibilityQuery } from '../list';
import { attribute } from '../presentation';
import { stateOf, type FollowUpState } from '../description';
import { workersPolling } from '../workers';
import { type BatchDescription, findBatch } from './describe-batch';

/** Who tells where a batch stands. */
export type BatchReport =
  | { readonly from: 'worker'; readonly progress: BatchProgress }
  | {
      /** No worker answered in time; this is what the server knows. */
      readonly from: 'server';
      readonly description: BatchDescription;
      /** Workers that poll the task queue of the batch. With none, the batch waits; nothing is lost. */
      readonly workers: number;
    };

/** How many follow-ups of a batch are in each state. */
export type ItemStates = Readonly<Partial<Record<FollowUpState, number>>>;

/** The server's own answers need no worker. */
const CALL_TIMEOUT_MS = 5_000;

/**
 * Where a batch stands: by its worker; by the server alone when no worker answers in time.
 *
 * @param timeoutMs how long a worker is waited for
 * @throws BatchNotFoundError; ServiceError when the server does not answer either
 */
export async function readBatchReport(
  client: Client,
  batchId: string,
  timeoutMs: number,
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
    return { from: 'server', description, workers: workers.length };
  }
}

/**
 * How many follow-ups of a batch are in each state, by the server's visibility store, which is eventually consistent.
 * Items that were not started are not in it.
 *
 * @returns null for a batch id that no query can hold
 */
export async function countItems(client: Client, batchId: string): Promise<ItemStates | null> {
  const query = visibilityQuery([['FollowUpBatch', attribute(batchId)]]);
  // Anything else finds too much.
  if (!query.includes('FollowUpBatch = ')) return null;
  const { groups } = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
    client.workflow.count(`${query} GROUP BY ExecutionStatus`),
  );
  const counts: Partial<Record<FollowUpState, number>> = {};
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
