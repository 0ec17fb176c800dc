import type { Client } from '@temporalio/client';
import { mayTryAgain, type TryAgain } from '../../core/batch';
import { type BatchPage, type PageInput } from '../../core/batch-workflows';
import { isRecord } from '../../core/json';
import { pageWorkflowId } from '../../core/ids';
import { mapConcurrently } from '../map-concurrently';
import { readFirstEvent } from '../../temporal/existing-run';
import { BatchEnds, isThere } from './batch-ends';
import { findBatch } from './describe-batch';
import { type BatchOptions, type PagedBatch, runBatch, type StartOfBatch } from './start-batch';
import { batchEnded, batchForgotten } from '../errors';

export interface RetryOptions extends BatchOptions {
  /**
   * Also the items of which nobody can tell whether their message arrived: those whose message did are sent twice.
   * @default false
   */
  readonly includeUnknown?: boolean;
}

/** Pages that are looked for at once. */
const AT_ONCE = 16;

/**
 * Runs a batch that has ended once more: each item whose last run provably sent nothing, or was rejected, gets another run
 * of the same follow-up id. Every other item keeps its end, so that nothing is sent twice, whatever is run next.
 *
 * @returns null when there is nothing to try again
 * @throws FollowUpError when it still runs; FollowUpError when not all of it is there any more
 */
export async function retryBatch(
  client: Client,
  taskQueue: string,
  batchId: string,
  { includeUnknown = false, ...options }: RetryOptions,
): Promise<StartOfBatch | null> {
  const again: TryAgain = includeUnknown ? 'unsent-or-unknown' : 'unsent';
  const before = await findBatch(client, batchId);
  const { pages } = before;
  // The same command again hands over what a starter that died has left.
  const goesOn = before.state === 'running' && pages?.again === again;
  if (before.state === 'running' && !goesOn) throw batchEnded(before.batchId, 'running');
  if (pages === null) throw batchForgotten(before.batchId, [1]);
  if (!goesOn) {
    const ends = await new BatchEnds(client, before.workflowId).rest();
    if (ends.length === pages.items && !ends.some((end) => mayTryAgain(end, again))) return null;
  }
  const sources = await pagesThatAreThere(
    client,
    before.batchId,
    [...pages.begun.map(({ run }) => run), before.run],
    pages.pages,
  );
  const batch: PagedBatch = {
    batchId: before.batchId,
    items: pages.items,
    pages: pages.pages,
    digest: before.itemsDigest,
    read: async function* (wanted) {
      for (const [page, workflowId] of sources)
        if (wanted(page)) yield await readPage(client, before.batchId, page, workflowId);
    },
  };
  return runBatch(client, taskQueue, batch, before, options, again);
}

/**
 * Where the items of each page are: in the page of whichever run has been handed it.
 *
 * @throws FollowUpError
 */
async function pagesThatAreThere(
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

async function readPage(
  client: Client,
  batchId: string,
  page: number,
  workflowId: string,
): Promise<BatchPage> {
  const event = await readFirstEvent(client, workflowId, '');
  if (!isRecord(event?.input)) throw batchForgotten(batchId, [page]);
  return (event.input as unknown as PageInput).page;
}
