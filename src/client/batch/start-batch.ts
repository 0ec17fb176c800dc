import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { MEMO_ITEMS_DIGEST, type BatchDescription, describeBatch, lookForBatch } from './describe-batch';
import { BATCH_PRIORITY_KEY, MAX_PAGES, type Tolerance, type TryAgain } from '../../core/batch';
import { cutPages, hasPage } from '../../core/batch-pages';
import {
  BATCH_PAGE_WORKFLOW,
  BATCH_TASK_TIMEOUT_MS,
  BATCH_WORKFLOW,
  type BatchInput,
  type BatchMemo,
  type BatchPage,
  type BegunPages,
  MEMO_PAGES,
  type PageInput,
} from '../../core/batch-workflows';
import { batchWorkflowId, pageWorkflowId } from '../../core/ids';
import { batchSummary, pageSummary } from '../../core/names';
import { inSetUpWords, keywordKey } from '../../temporal/search-attributes';
import type { RunState } from '../../temporal/existing-run';
import { mapConcurrently } from '../map-concurrently';
import { attribute } from '../start';
import type { WaitOptions } from '../result';
import { lastRunOf, refuseForgotten } from './batch-ends';
import type { CheckedBatch } from './items';
import { InvalidRequestError, batchConflict } from '../errors';

export interface BatchOptions extends WaitOptions {
  /** How many follow-ups are open at a time, 1 to 1,000. @default 50 */
  readonly concurrency?: number;
  /** Beyond so many failures no further item is started, and the batch fails. @default null, which is any number */
  readonly tolerate?: Tolerance;
  /** Called after each page that was handed over. */
  readonly onPage?: (handedOver: number, pages: number) => void;
}

/** What a start has found or made. */
export interface StartOfBatch {
  readonly batchId: string;
  readonly workflowId: string;
  /** False when this call started the batch; else whether the one that was there is running or has ended. */
  readonly attached: false | 'running' | 'ended';
  /** How the batch of this id had ended that goes on by this call; null where there was none to go on with. */
  readonly resumedAfter: RunState | null;
  readonly items: number;
  readonly pages: number;
}

/** A batch as it is handed over page by page: from a file, or from an earlier run of itself. */
export interface PagedBatch {
  readonly batchId: string;
  readonly items: number;
  readonly pages: number;
  /** Whether a batch that is there is this very one. */
  readonly digest: string | null;
  /** @param wanted the numbers of the pages that are needed */
  readonly read: (wanted: (page: number) => boolean) => Iterable<BatchPage> | AsyncIterable<BatchPage>;
}

/**
 * Starts a batch, or goes on with the one of the same id: one that runs is handed what it lacks; one that was cancelled,
 * terminated or has failed is run again, and what has been sent is not sent again; one that is done stays done.
 *
 * Safe to repeat: after a crash in the middle of the hand-over, the same call hands over the rest.
 *
 * @throws ConflictError when the batch of this id has other items, options or another order
 * @throws FollowUpError when nobody can tell any more what it has sent
 * @throws SearchAttributesError when the namespace is not set up
 */
export async function startBatch(
  client: Client,
  taskQueue: string,
  { batchId, items, digest }: CheckedBatch,
  options: BatchOptions = {},
): Promise<StartOfBatch> {
  const before = await lookForBatch(client, batchId);
  const batch: PagedBatch = { batchId, items: items.length, pages: numberOfPages(items), digest, read };
  if (before !== null) refuseAnother(batch, before.itemsDigest);
  if (before?.state === 'completed') return { ...startedOf(batch, before), attached: 'ended' };
  return runBatch(client, taskQueue, batch, before, options, null);

  function* read(wanted: (page: number) => boolean): Generator<BatchPage> {
    for (const page of cutPages(items)) if (wanted(page.number)) yield page;
  }
}

/**
 * Starts a run of a batch, or attaches to the one that runs, and hands over the pages that it lacks.
 *
 * @param before the batch as it is there
 * @param again which of the items that have ended are started again; null where a batch that is done stays done
 */
export async function runBatch(
  client: Client,
  taskQueue: string,
  batch: PagedBatch,
  before: BatchDescription | null,
  options: BatchOptions,
  again: TryAgain | null,
): Promise<StartOfBatch> {
  const { batchId, items, pages, digest } = batch;
  const started = startedOf(batch, before);
  const { workflowId } = started;
  const earlier = before === null || before.state === 'running' ? [] : begunBy(before);
  await refuseForgotten(client, batchId, earlier);
  const memo: BatchMemo = { batchId, items, pages, again, begun: earlier };
  const input: BatchInput = {
    batchId,
    ...(options.concurrency === undefined ? {} : { concurrency: options.concurrency }),
    ...(options.tolerate === undefined ? {} : { tolerate: options.tolerate }),
    handedOver: { items, pages },
    ...(earlier.length === 0 ? {} : { earlier }),
    ...(again === null ? {} : { again }),
  };
  try {
    await client.workflow.start(BATCH_WORKFLOW, {
      workflowId,
      taskQueue,
      args: [input],
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowIdReusePolicy: again === null ? 'ALLOW_DUPLICATE_FAILED_ONLY' : 'ALLOW_DUPLICATE',
      typedSearchAttributes: [{ key: keywordKey('FollowUpBatch'), value: attribute(batchId) }],
      memo: { [MEMO_PAGES]: memo, ...(digest === null ? {} : { [MEMO_ITEMS_DIGEST]: digest }) },
      priority: { priorityKey: BATCH_PRIORITY_KEY },
      workflowTaskTimeout: BATCH_TASK_TIMEOUT_MS,
      staticSummary: batchSummary(items),
    });
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return { ...started, attached: 'ended' };
    throw inSetUpWords(error, client.options.namespace);
  }
  const now = await describeBatch(client, workflowId);
  if (now === null) throw new TypeError('a batch is gone that was just started');
  // Somebody may have started another one in between.
  refuseAnother(batch, now.itemsDigest);
  const known = now.pages?.begun ?? [];
  const own = known.find(({ run }) => run === now.run)?.pages ?? [];
  const earlierRuns = known.filter(({ run }) => run !== now.run);
  // What the batch has begun it does not need, whatever has become of the page.
  await handOver(client, taskQueue, {
    batchWorkflowId: workflowId,
    batchId,
    run: now.run,
    again: now.pages?.again ?? null,
    pages: batch.read((page) => !hasPage(own, page)),
    total: pages,
    earlierRunOf: (page) => lastRunOf(earlierRuns, page),
    onPage: options.onPage,
    signal: options.signal,
  });
  if (before?.state === 'running') return { ...started, attached: 'running' };
  return { ...started, attached: false, resumedAfter: before?.state ?? null };
}

/** What the runs of a batch have begun, up to this one. */
function begunBy({ pages }: BatchDescription): readonly BegunPages[] {
  return (pages?.begun ?? []).filter((each) => each.pages.length > 0);
}

function startedOf({ batchId, items, pages }: PagedBatch, before: BatchDescription | null) {
  const workflowId = before?.workflowId ?? batchWorkflowId(batchId);
  return { batchId, workflowId, items, pages, resumedAfter: null };
}

/** @throws InvalidRequestError */
function numberOfPages(items: CheckedBatch['items']): number {
  let pages = 0;
  for (const page of cutPages(items)) pages = page.number;
  if (pages <= MAX_PAGES) return pages;
  const text = `the messages are so large that the batch has ${pages} pages; at most ${MAX_PAGES} are possible, so divide it`;
  throw new InvalidRequestError([{ field: 'items', text }]);
}

function refuseAnother({ batchId, digest }: PagedBatch, there: string | null): void {
  if (there !== null && there !== digest) throw batchConflict(batchId);
}

/** Pages that are handed over at once: each is one call of half a megabyte at most. */
const AT_ONCE = 8;

interface HandOver extends Pick<PageInput, 'batchWorkflowId' | 'batchId' | 'run'> {
  readonly again: TryAgain | null;
  /** Those that the batch lacks. */
  readonly pages: Iterable<BatchPage> | AsyncIterable<BatchPage>;
  /** Of how many pages in all. */
  readonly total: number;
  /** The earlier run of the batch that knows what became of a page's items; null where none has begun it. */
  readonly earlierRunOf: (page: number) => string | null;
  readonly onPage: ((handedOver: number, pages: number) => void) | undefined;
  /** Ends the hand-over between two pages. */
  readonly signal: AbortSignal | undefined;
}

/** Starts the pages of a batch that are not there yet. */
async function handOver(client: Client, taskQueue: string, batch: HandOver): Promise<void> {
  const { batchWorkflowId, batchId, run, again, total, onPage } = batch;
  let handedOver = 0;
  await mapConcurrently(batch.pages, AT_ONCE, async (page) => {
    batch.signal?.throwIfAborted();
    const earlierRun = batch.earlierRunOf(page.number);
    const earlier = earlierRun === null ? null : pageWorkflowId(batchId, earlierRun, page.number);
    await startPage(client, taskQueue, { batchWorkflowId, batchId, run, page, earlier, again });
    handedOver += 1;
    onPage?.(handedOver, total);
  });
}

async function startPage(client: Client, taskQueue: string, input: PageInput): Promise<void> {
  const { batchId, run, page } = input;
  try {
    await client.workflow.start(BATCH_PAGE_WORKFLOW, {
      workflowId: pageWorkflowId(batchId, run, page.number),
      taskQueue,
      args: [input],
      workflowIdConflictPolicy: 'FAIL',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      typedSearchAttributes: [{ key: keywordKey('FollowUpBatch'), value: attribute(batchId) }],
      priority: { priorityKey: BATCH_PRIORITY_KEY },
      workflowTaskTimeout: BATCH_TASK_TIMEOUT_MS,
      staticSummary: pageSummary(page.number, page.items.length),
    });
  } catch (error) {
    // It was handed over before.
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}
