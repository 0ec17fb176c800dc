import type { Client } from '@temporalio/client';
import { mayTryAgain, type TryAgain } from '../../core/batch';
import { cutPages } from '../../core/batch-pages';
import { pageWorkflowId } from '../../core/ids';
import { batchEnded, batchForgotten } from '../errors';
import { mapConcurrently } from '../map-concurrently';
import { BatchEnds, isThere } from './batch-ends';
import { type BatchDescription, findBatch } from './describe-batch';
import { inputOfBatch, pageWithItems } from './input-of-batch';
import {
  type BatchOptions,
  type BatchSource,
  numberOfPages,
  runBatch,
  type StartOfBatch,
} from './start-batch';

export interface RetryOptions extends BatchOptions {
  /**
   * Also the items of which nobody can tell whether their message arrived: those whose message did are sent twice.
   * @default false
   */
  readonly includeUnknown?: boolean;
}

/**
 * Runs a batch that has ended once more: each item whose last run provably sent nothing, or was rejected, gets another run
 * of the same follow-up id. Every other item keeps its end, so that nothing is sent twice, whatever is run next.
 *
 * @returns null when there is nothing to try again
 * @throws FollowUpError `STILL_RUNNING`; `BATCH_FORGOTTEN` when not all of it exists any more
 */
export async function retryBatch(
  client: Client,
  taskQueue: string,
  batchId: string,
  { includeUnknown = false, ...options }: RetryOptions,
): Promise<StartOfBatch | null> {
  const again: TryAgain = includeUnknown ? 'unsent-or-unknown' : 'unsent';
  const before = await findBatch(client, batchId);
  // The same command again hands over what a starter that died has left.
  const goesOn = before.state === 'running' && before.pages?.again === again;
  if (before.state === 'running' && !goesOn) throw batchEnded(before.batchId, 'running');
  const source = await sourceOf(client, before);
  if (!goesOn) {
    const ends = await new BatchEnds(client, before.workflowId).rest();
    if (ends.length === source.items && !ends.some((end) => mayTryAgain(end, again))) return null;
  }
  return runBatch(client, taskQueue, source, before, options, again);
}

/** The items of a batch: in its own input, or in the pages of whichever run has been handed them. */
async function sourceOf(client: Client, before: BatchDescription): Promise<BatchSource> {
  const { batchId, pages: memo } = before;
  const ownItems = (await inputOfBatch(client, before))?.items;
  if (ownItems !== undefined) {
    const pages = numberOfPages(ownItems);
    return { batchId, items: ownItems.length, pages, digest: null, ownItems, read: () => cutPages(ownItems) };
  }
  if (memo === null) throw batchForgotten(batchId, [1]);
  const { items, pages, begun } = memo;
  const existing = await existingPages(client, batchId, [...begun.map(({ run }) => run), before.run], pages);
  return { batchId, items, pages, digest: before.itemsDigest, ownItems: null, read };

  async function* read(wanted: (page: number) => boolean) {
    for (const [number, workflowId] of existing) {
      if (!wanted(number)) continue;
      const page = await pageWithItems(client, workflowId);
      if (page === null) throw batchForgotten(batchId, [number]);
      yield page;
    }
  }
}

/** Pages that are looked for at once. */
const AT_ONCE = 16;

/**
 * The workflow of each page, in whichever run has been handed it.
 *
 * @throws FollowUpError
 */
async function existingPages(
  client: Client,
  batchId: string,
  runs: readonly string[],
  pages: number,
): Promise<Map<number, string>> {
  const found = new Map<number, string>();
  const numbers = Array.from({ length: pages }, (_, index) => index + 1);
  await mapConcurrently(numbers, AT_ONCE, async (page) => {
    for (const run of [...new Set(runs)].reverse()) {
      const workflowId = pageWorkflowId(batchId, run, page);
      if (!(await isThere(client, workflowId))) continue;
      found.set(page, workflowId);
      return;
    }
  });
  const missing = numbers.filter((page) => !found.has(page));
  if (missing.length > 0) throw batchForgotten(batchId, missing);
  return found;
}
