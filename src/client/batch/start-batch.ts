import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import {
  type BatchItem,
  CONCURRENCY,
  MAX_PAGES,
  mayTryAgain,
  requestIdOf,
  type TryAgain,
} from '../../core/batch/batch';
import { cutPages, hasPage, pageInput, pagesIn } from '../../core/batch/pages';
import {
  BATCH_PAGE_WORKFLOW,
  BATCH_WORKFLOW,
  type BatchInput,
  type BatchMemo,
  type BatchPage,
  MEMO_PAGES,
  type PageInput,
} from '../../core/batch/workflows';
import { hasCode } from '../../core/errors';
import { batchWorkflowId, followUpWorkflowId, pageWorkflowId } from '../../core/ids';
import { batchStart, batchSummary, pageStart } from '../../core/starts';
import { compareRequests, describeWorkflow, type RunState } from '../../temporal/existing-run';
import { eachConcurrently } from '../each-concurrently';
import { ASKED_AT_ONCE, BatchEnds, begunOf, latestPages } from './batch-ends';
import {
  type BatchDescription,
  findBatch,
  inputOfBatch,
  lookForBatch,
  MEMO_ITEMS_DIGEST,
  pageWithItems,
} from './describe-batch';
import { type CheckedBatch, itemsDigest } from './items';
import { batchConflict, batchForgotten, InvalidRequestError, wrongState } from '../errors';
import { checkRunOptions, type RunOptions } from '../run-options';
import { planOf } from '../start';

export interface BatchOptions extends RunOptions {
  /** Called after each page that was handed over. */
  readonly onPage?: ((handedOver: number, pages: number) => void) | undefined;
}

export interface StartOfBatch {
  readonly batchId: string;
  readonly workflowId: string;
  /** False when this call started the batch; else whether the existing one is running or has ended. */
  readonly attached: false | 'running' | 'ended';
  /** How the batch had ended that this call continues; null if it continues none. */
  readonly resumedAfter: RunState | null;
  readonly items: number;
  readonly pages: number;
}

export interface RetryOptions extends BatchOptions {
  /**
   * Also the items of which nobody can tell whether their message arrived: those whose message did are sent twice.
   * @default false
   */
  readonly includeUnknown?: boolean | undefined;
}

interface BatchStart<Options = BatchOptions> {
  readonly client: Client;
  readonly taskQueue: string;
  readonly options: Options;
  /** Ends the hand-over between two pages. */
  readonly signal: AbortSignal;
}

interface BatchSource {
  readonly batchId: string;
  readonly items: number;
  readonly pages: number;
  /** Null if only the existing batch's own items are at hand, which need no comparison. */
  readonly digest: string | null;
  /** The items of a batch that starts its pages itself; null if each page is handed over. */
  readonly ownItems: readonly BatchItem[] | null;
  readonly read: (page: number) => Promise<BatchPage | null | undefined>;
}

/** `BatchClient.start` says what it does. */
export async function startBatch(
  start: BatchStart,
  { batchId, items, digest }: CheckedBatch,
): Promise<StartOfBatch> {
  const before = await lookForBatch(start.client, batchId);
  return runBatch(start, { ...sourceOf(batchId, items), digest, ownItems: null }, before, null);
}

/** `BatchHandle.retry` says what it does. */
export async function retryBatch(
  start: BatchStart<RetryOptions>,
  batchId: string,
): Promise<StartOfBatch | null> {
  const { client, options } = start;
  checkRunOptions(options, ['includeUnknown', 'onPage']);
  const again: TryAgain = options.includeUnknown === true ? 'unsent-or-unknown' : 'unsent';
  const before = await findBatch(client, batchId);
  // The same command again hands over what a starter that died has left.
  const goesOn = before.state === 'running' && before.pages?.again === again;
  if (before.state === 'running' && !goesOn) throw wrongState(before.workflowId, 'running');
  const source = await existingSource(client, before);
  if (!goesOn) {
    const { ends, problem } = await new BatchEnds(client, before.workflowId).rest();
    if (hasCode(problem, 'NO_ANSWER')) throw problem;
    if (ends.length === source.items && !ends.some((end) => mayTryAgain(end, again))) return null;
  }
  return runBatch(start, source, before, again);
}

/** @throws InvalidRequestError when they make too many pages */
function sourceOf(batchId: string, items: readonly BatchItem[]) {
  const pages = [...cutPages(items)];
  if (pages.length > MAX_PAGES) {
    const text = `the messages are so large that the batch has ${pages.length} pages; at most ${MAX_PAGES} are possible, so divide it`;
    throw new InvalidRequestError([{ field: 'items', text }]);
  }
  const read = (page: number) => Promise.resolve(pages[page - 1]);
  return { batchId, items: items.length, pages: pages.length, read };
}

async function existingSource(client: Client, before: BatchDescription): Promise<BatchSource> {
  const { batchId, pages: memo, itemsDigest: digest } = before;
  const ownItems = (await inputOfBatch(client, before))?.items;
  if (ownItems !== undefined) return { ...sourceOf(batchId, ownItems), digest: null, ownItems };
  if (memo === null) throw batchForgotten(batchId);
  const { items, pages, begun } = memo;
  const runs = [before.run, ...begun.toReversed().map(({ run }) => run)];
  const existing = new Map<number, string>();
  await eachConcurrently(pagesIn([[1, pages]]), ASKED_AT_ONCE, async (page) => {
    const ids = runs.map((run) => pageWorkflowId(batchId, run, page));
    existing.set(page, await firstExisting(client, batchId, ids));
  });
  const read = (page: number) => pageWithItems(client, existing.get(page) ?? '');
  return { batchId, items, pages, digest, ownItems: null, read };
}

/** The first workflow id of a page that exists. @throws FollowUpError `BATCH_FORGOTTEN` when none does */
async function firstExisting(client: Client, batchId: string, ids: readonly string[]): Promise<string> {
  for (const workflowId of ids) if ((await describeWorkflow(client, workflowId)) !== null) return workflowId;
  throw batchForgotten(batchId);
}

/**
 * Starts a run of a batch, or attaches to the one that runs, and hands over the pages that it lacks.
 *
 * @param again which of the items that have ended are started again; null if a batch that is done stays done
 */
async function runBatch(
  start: BatchStart,
  source: BatchSource,
  before: BatchDescription | null,
  again: TryAgain | null,
): Promise<StartOfBatch> {
  const { client, taskQueue, options } = start;
  const { batchId, items, pages, digest, ownItems } = source;
  if (before !== null) await refuseAnother(client, source, before);
  const workflowId = before?.workflowId ?? batchWorkflowId(batchId);
  const started = { batchId, workflowId, items, pages, resumedAfter: null };
  if (before?.state === 'completed' && again === null) return { ...started, attached: 'ended' };
  const isOver = before !== null && before.state !== 'running';
  const earlier = isOver ? await begunOf(client, before) : [];
  // They know what has been sent.
  await eachConcurrently(latestPages(batchId, earlier), ASKED_AT_ONCE, async (page) => {
    await firstExisting(client, batchId, [page]);
  });
  const settings = isOver ? (before.pages ?? (await inputOfBatch(client, before))) : null;
  const concurrency = options.concurrency ?? settings?.concurrency ?? CONCURRENCY.default;
  const tolerate = (options.tolerate === undefined ? settings?.tolerate : options.tolerate) ?? null;
  const itemsOrPages = ownItems === null ? { handedOver: { items, pages } } : { items: ownItems };
  const input: BatchInput = { batchId, concurrency, tolerate, earlier, again, ...itemsOrPages };
  const memo: BatchMemo = { batchId, items, pages, again, concurrency, tolerate, begun: earlier };
  try {
    // One that runs is not started: if it ended at this moment, the next run would know nothing of it.
    if (before?.state !== 'running')
      await client.workflow.start(BATCH_WORKFLOW, {
        ...batchStart(batchId),
        workflowId,
        taskQueue,
        args: [input],
        workflowIdConflictPolicy: 'USE_EXISTING',
        workflowIdReusePolicy: again === null ? 'ALLOW_DUPLICATE_FAILED_ONLY' : 'ALLOW_DUPLICATE',
        memo: { [MEMO_PAGES]: memo, ...(digest === null ? {} : { [MEMO_ITEMS_DIGEST]: digest }) },
        staticSummary: batchSummary(items),
      });
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return { ...started, attached: 'ended' };
    throw error;
  }
  const now = await findBatch(client, workflowId);
  if (before?.state === 'running' && now.state !== 'running') {
    if (now.state === 'completed') return { ...started, attached: 'ended' };
    throw wrongState(workflowId, now.state);
  }
  // Somebody may have started another one in between.
  if (now.run !== before?.run) await refuseAnother(client, source, now);
  if ((await inputOfBatch(client, now))?.items === undefined) await handOver(start, source, now);
  if (before?.state === 'running') return { ...started, attached: 'running' };
  return { ...started, attached: false, resumedAfter: before?.state ?? null };
}

/**
 * Refuses a batch of other items, and one that can't be compared.
 *
 * @throws ConflictError which names the options that differ, if those of an item on the first page do
 */
async function refuseAnother(client: Client, source: BatchSource, there: BatchDescription): Promise<void> {
  const { batchId, digest } = source;
  if (digest === null) return;
  const own = there.itemsDigest === null ? (await inputOfBatch(client, there))?.items : undefined;
  const theirs = there.itemsDigest ?? (own === undefined ? null : itemsDigest(own));
  if (theirs === digest) return;
  const first = own ?? (await pageWithItems(client, pageWorkflowId(batchId, there.run, 1)))?.items ?? [];
  throw batchConflict(batchId, differentOptions(batchId, (await source.read(1))?.items ?? [], first));
}

/** The options, in words, in which the first item that both have differs; none where each has the same. */
function differentOptions(batchId: string, items: readonly BatchItem[], there: readonly BatchItem[]) {
  const named = (item: BatchItem) => ({ ...item.request, requestId: requestIdOf(batchId, item) });
  const idOf = ({ projectId, jobId, requestId }: ReturnType<typeof named>) =>
    followUpWorkflowId(projectId, jobId, requestId);
  const theirs = new Map(there.map(named).map((request) => [idOf(request), request]));
  for (const request of items.map(named)) {
    const compared = compareRequests(planOf(request), theirs.get(idOf(request)));
    if (compared?.promptCompared && compared.differences.length > 0) return compared.differences;
  }
  return [];
}

/** Pages that are handed over at once: each is one call of half a megabyte at most. */
const AT_ONCE = 8;

/** Starts the pages that a batch has not begun. It does not need the others, whatever has become of them. */
async function handOver(
  { client, taskQueue, options, signal }: BatchStart,
  { batchId, pages, read }: BatchSource,
  description: BatchDescription,
): Promise<void> {
  const { workflowId, run, pages: memo } = description;
  const begun = await begunOf(client, description);
  const own = begun.find((each) => each.run === run)?.pages ?? [];
  const batch = { batchWorkflowId: workflowId, batchId, run, again: memo?.again ?? null };
  let handedOver = 0;
  const missing = [...pagesIn([[1, pages]])].filter((page) => !hasPage(own, page));
  await eachConcurrently(missing, AT_ONCE, async (number) => {
    signal.throwIfAborted();
    const page = await read(number);
    if (!page) throw batchForgotten(batchId);
    const input = pageInput(batch, page, begun);
    // The SDK keeps each request as long as its signal, so each page gets its own.
    await client.withAbortSignal(new AbortController().signal, () => startPage(client, taskQueue, input));
    handedOver += 1;
    options.onPage?.(handedOver, pages);
  });
}

async function startPage(client: Client, taskQueue: string, input: PageInput): Promise<void> {
  try {
    await client.workflow.start(BATCH_PAGE_WORKFLOW, {
      ...pageStart(input),
      taskQueue,
      workflowIdConflictPolicy: 'FAIL',
      // One that has ended before it could begin is started again; one that has completed knows what was sent.
      workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY',
    });
  } catch (error) {
    // It was handed over before.
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}
