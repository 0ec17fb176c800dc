import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import {
  BATCH_PRIORITY_KEY,
  type BatchItem,
  CONCURRENCY,
  MAX_PAGES,
  type Tolerance,
  type TryAgain,
} from '../../core/batch';
import { cutPages, hasPage, pageInput } from '../../core/batch-pages';
import {
  BATCH_PAGE_WORKFLOW,
  BATCH_TASK_TIMEOUT_MS,
  BATCH_WORKFLOW,
  type BatchInput,
  type BatchMemo,
  type BatchPage,
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
import { refuseForgotten } from './batch-ends';
import { type BatchDescription, describeBatch, lookForBatch, MEMO_ITEMS_DIGEST } from './describe-batch';
import { itemsDigest } from './identity';
import { inputOfBatch, pageWithItems } from './input-of-batch';
import type { CheckedBatch } from './items';
import { InvalidRequestError, batchConflict } from '../errors';

export interface BatchOptions extends WaitOptions {
  /** How many follow-ups are open at a time, 1 to 1,000. @default as the batch had it before; 50 for a new one */
  readonly concurrency?: number;
  /**
   * Beyond so many failures no further item is started, and the batch fails. Null is any number.
   *
   * @default as the batch had it before; null for a new one
   */
  readonly tolerate?: Tolerance;
  /** Called after each page that was handed over. */
  readonly onPage?: (handedOver: number, pages: number) => void;
}

/** What a start has found or made. */
export interface StartOfBatch {
  readonly batchId: string;
  readonly workflowId: string;
  /** False when this call started the batch; else whether the existing one is running or has ended. */
  readonly attached: false | 'running' | 'ended';
  /** How the batch of this id had ended that goes on by this call; null where there was none to go on with. */
  readonly resumedAfter: RunState | null;
  readonly items: number;
  readonly pages: number;
}

/** What a run of a batch is made of. */
export interface BatchSource {
  readonly batchId: string;
  readonly items: number;
  readonly pages: number;
  /** Whether an existing batch is this very one; null where only its own items are at hand. */
  readonly digest: string | null;
  /** The items of a batch that starts its pages itself; null where each page is handed over. */
  readonly ownItems: readonly BatchItem[] | null;
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
  const pages = numberOfPages(items);
  const source: BatchSource = { batchId, items: items.length, pages, digest, ownItems: null, read };
  if (before?.state === 'completed') {
    await refuseAnother(client, source, before);
    return { ...startedOf(source, before), attached: 'ended' };
  }
  return runBatch(client, taskQueue, source, before, options, null);

  function* read(wanted: (page: number) => boolean): Generator<BatchPage> {
    for (const page of cutPages(items)) if (wanted(page.number)) yield page;
  }
}

/**
 * Starts a run of a batch, or attaches to the one that runs, and hands over the pages that it lacks. A further run keeps
 * the concurrency and the tolerance of the batch unless it is told otherwise.
 *
 * @param before the batch as it exists
 * @param again which of the items that have ended are started again; null where a batch that is done stays done
 */
export async function runBatch(
  client: Client,
  taskQueue: string,
  source: BatchSource,
  before: BatchDescription | null,
  options: BatchOptions,
  again: TryAgain | null,
): Promise<StartOfBatch> {
  const { batchId, items, pages, digest, ownItems } = source;
  if (before !== null) await refuseAnother(client, source, before);
  const started = startedOf(source, before);
  const { workflowId } = started;
  const isOver = before !== null && before.state !== 'running';
  const earlier = isOver ? (before.pages?.begun ?? []).filter((each) => each.pages.length > 0) : [];
  await refuseForgotten(client, batchId, earlier);
  const settings = isOver ? (before.pages ?? (await inputOfBatch(client, before))) : null;
  const input: BatchInput = {
    batchId,
    ...present('concurrency', options.concurrency ?? settings?.concurrency),
    ...present('tolerate', options.tolerate === undefined ? settings?.tolerate : options.tolerate),
    ...(ownItems === null ? { handedOver: { items, pages } } : { items: ownItems }),
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
      memo: {
        [MEMO_PAGES]: firstMemo(input, items, pages),
        ...(digest === null ? {} : { [MEMO_ITEMS_DIGEST]: digest }),
      },
      priority: { priorityKey: BATCH_PRIORITY_KEY },
      workflowTaskTimeout: BATCH_TASK_TIMEOUT_MS,
      staticSummary: batchSummary(items),
    });
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return { ...started, attached: 'ended' };
    throw inSetUpWords(error, client.options.namespace);
  }
  const now = await describeBatch(client, workflowId);
  if (now === null) throw new TypeError('a batch does not exist that was just started');
  // Somebody may have started another one in between.
  if (now.run !== before?.run) await refuseAnother(client, source, now);
  if ((await inputOfBatch(client, now))?.items === undefined)
    await handOver(client, taskQueue, source, now, options);
  if (before?.state === 'running') return { ...started, attached: 'running' };
  return { ...started, attached: false, resumedAfter: before?.state ?? null };
}

function present<Name extends string, Value>(name: Name, value: Value | undefined) {
  return (value === undefined ? {} : { [name]: value }) as Partial<Record<Name, Value>>;
}

/** What is known of a batch before a worker has taken it up. */
function firstMemo(
  {
    batchId = '',
    concurrency = CONCURRENCY.default,
    tolerate = null,
    again = null,
    earlier = [],
  }: BatchInput,
  items: number,
  pages: number,
): BatchMemo {
  return { batchId, items, pages, again, concurrency, tolerate, begun: earlier };
}

function startedOf({ batchId, items, pages }: BatchSource, before: BatchDescription | null) {
  const workflowId = before?.workflowId ?? batchWorkflowId(batchId);
  return { batchId, workflowId, items, pages, resumedAfter: null };
}

/** @throws InvalidRequestError */
export function numberOfPages(items: readonly BatchItem[]): number {
  let pages = 0;
  for (const page of cutPages(items)) pages = page.number;
  if (pages <= MAX_PAGES) return pages;
  const text = `the messages are so large that the batch has ${pages} pages; at most ${MAX_PAGES} are possible, so divide it`;
  throw new InvalidRequestError([{ field: 'items', text }]);
}

/** Pages that are read or handed over at once: each is one call of half a megabyte at most. */
const AT_ONCE = 8;

/**
 * Refuses a batch of other items: by the digest that our client leaves, by the items in its own input, or by its pages.
 *
 * @throws ConflictError
 */
async function refuseAnother(client: Client, source: BatchSource, there: BatchDescription): Promise<void> {
  const { batchId, digest, items, pages } = source;
  if (digest === null) return;
  const input = there.itemsDigest === null ? await inputOfBatch(client, there) : null;
  const theirs = there.itemsDigest ?? (input?.items ? itemsDigest(input.items) : null);
  if (theirs !== null) {
    if (theirs !== digest) throw batchConflict(batchId);
    return;
  }
  if (input?.handedOver === undefined) return;
  if (input.handedOver.items !== items || input.handedOver.pages !== pages) throw batchConflict(batchId);
  await mapConcurrently(
    source.read(() => true),
    AT_ONCE,
    async (page) => {
      const existing = await pageWithItems(client, pageWorkflowId(batchId, there.run, page.number));
      if (existing !== null && itemsDigest(existing.items) !== itemsDigest(page.items))
        throw batchConflict(batchId);
    },
  );
}

/** Starts the pages that a batch has not begun: what it has begun it does not need, whatever has become of the page. */
async function handOver(
  client: Client,
  taskQueue: string,
  { batchId, pages, read }: BatchSource,
  { workflowId, run, pages: memo }: BatchDescription,
  { onPage, signal }: BatchOptions,
): Promise<void> {
  const begun = memo?.begun ?? [];
  const own = begun.find((each) => each.run === run)?.pages ?? [];
  const earlier = begun.filter((each) => each.run !== run);
  const batch = { batchWorkflowId: workflowId, batchId, run, again: memo?.again ?? null };
  let handedOver = 0;
  const missing = read((page) => !hasPage(own, page));
  await mapConcurrently(missing, AT_ONCE, async (page) => {
    signal?.throwIfAborted();
    await startPage(client, taskQueue, pageInput(batch, page, earlier));
    handedOver += 1;
    onPage?.(handedOver, pages);
  });
}

/** Starts a page that has not begun: one that has ended before it could is started again. */
async function startPage(client: Client, taskQueue: string, input: PageInput): Promise<void> {
  const { batchId, run, page } = input;
  try {
    await client.workflow.start(BATCH_PAGE_WORKFLOW, {
      workflowId: pageWorkflowId(batchId, run, page.number),
      taskQueue,
      args: [input],
      workflowIdConflictPolicy: 'FAIL',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
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
