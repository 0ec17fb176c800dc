import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { hasPage } from '../../batch/page-ranges';
import { cutPages } from '../../batch/pages';
import { BATCH_PRIORITY_KEY, MAX_PAGES, type Tolerance } from '../../contract/batch';
import {
  BATCH_WORKFLOW,
  type BatchInput,
  type BatchMemo,
  type BatchPage,
  type BegunPages,
  MEMO_PAGES,
  type TryAgain,
} from '../../contract/batch-workflows';
import { batchSummary } from '../../contract/start-words';
import { batchWorkflowId } from '../../contract/workflow-id';
import { BatchConflictError, InvalidBatchError } from '../errors';
import { attribute } from '../presentation';
import { type FollowUpState, keywordKey } from '../description';
import { inSetUpWords } from '../search-attributes';
import { type BatchDescription, describeBatch, lookForBatch } from './describe-batch';
import { handOver } from './hand-over';
import type { CheckedBatch } from './item-collector';
import { MEMO_ITEMS_DIGEST } from './memo';
import { lastRunOf, refuseForgotten } from './earlier-pages';

export interface BatchOptions {
  /** How many follow-ups are open at a time, 1 to 1,000. @default 50 */
  readonly concurrency?: number;
  /** Beyond so many failures no further item is started, and the batch fails. @default null, which is any number */
  readonly tolerate?: Tolerance;
  /** Called after each page that was handed over. */
  readonly onPage?: (handedOver: number, pages: number) => void;
}

export interface StartedBatch {
  readonly batchId: string;
  readonly workflowId: string;
  /** False when this call started the batch; else whether the one that was there is running or has ended. */
  readonly attached: false | 'running' | 'ended';
  /** How the batch of this id had ended that goes on by this call; null where there was none to go on with. */
  readonly resumedAfter: FollowUpState | null;
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
 * @throws BatchConflictError when the batch of this id has other items, options or another order
 * @throws BatchForgottenError when nobody can tell any more what it has sent
 * @throws SearchAttributesError when the namespace is not set up
 */
export async function startBatch(
  client: Client,
  taskQueue: string,
  { batchId, items, digest }: CheckedBatch,
  options: BatchOptions = {},
): Promise<StartedBatch> {
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
): Promise<StartedBatch> {
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

/** @throws InvalidBatchError */
function numberOfPages(items: CheckedBatch['items']): number {
  let pages = 0;
  for (const page of cutPages(items)) pages = page.number;
  if (pages <= MAX_PAGES) return pages;
  throw new InvalidBatchError([
    `the messages are so large that the batch has ${pages} pages; at most ${MAX_PAGES} are possible, so divide it`,
  ]);
}

function refuseAnother({ batchId, digest }: PagedBatch, there: string | null): void {
  if (there !== null && there !== digest) throw new BatchConflictError(batchId);
}
