import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { cutPages } from '../../batch/pages';
import { BATCH_PRIORITY_KEY, type Tolerance } from '../../contract/batch';
import {
  BATCH_PAGE_WORKFLOW,
  BATCH_WORKFLOW,
  type BatchInput,
  type PageInput,
} from '../../contract/batch-workflows';
import { batchSummary, pageSummary } from '../../contract/start-words';
import { batchWorkflowId, pageWorkflowId } from '../../contract/workflow-id';
import { BatchConflictError } from '../errors';
import { eachOf } from '../each-of';
import { attribute } from '../presentation';
import { type FollowUpState, keywordKey } from '../description';
import { inSetUpWords } from '../search-attributes';
import { describeBatch } from './describe-batch';
import type { CheckedBatch } from './item-collector';
import { MEMO_ITEMS_DIGEST } from './memo';

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

/** Pages that are handed over at once: each is one call of half a megabyte at most. */
const AT_ONCE = 8;

/**
 * Starts a batch, or goes on with the one of the same id: one that runs is handed what it lacks; one that was cancelled,
 * terminated or has failed is run again, and what has settled is not sent again; one that is done stays done.
 *
 * Safe to repeat: after a crash in the middle of the hand-over, the same call hands over the rest.
 *
 * @throws BatchConflictError when the batch of this id has other items, options or another order
 * @throws SearchAttributesError when the namespace is not set up
 */
export async function startBatch(
  client: Client,
  taskQueue: string,
  batch: CheckedBatch,
  options: BatchOptions = {},
): Promise<StartedBatch> {
  const { batchId, items, digest } = batch;
  const workflowId = batchWorkflowId(batchId);
  const pages = countPages(batch);
  const before = await describeBatch(client, workflowId);
  const started = { batchId, workflowId, items: items.length, pages, resumedAfter: null };
  if (before !== null) refuseAnother(batch, before.itemsDigest);
  if (before?.state === 'completed') return { ...started, attached: 'ended' };
  const input: BatchInput = {
    batchId,
    ...(options.concurrency === undefined ? {} : { concurrency: options.concurrency }),
    ...(options.tolerate === undefined ? {} : { tolerate: options.tolerate }),
    handedOver: { items: items.length, pages },
  };
  try {
    await client.workflow.start(BATCH_WORKFLOW, {
      workflowId,
      taskQueue,
      args: [input],
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY',
      typedSearchAttributes: [{ key: keywordKey('FollowUpBatch'), value: attribute(batchId) }],
      memo: { [MEMO_ITEMS_DIGEST]: digest },
      priority: { priorityKey: BATCH_PRIORITY_KEY },
      staticSummary: batchSummary(items.length),
    });
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return { ...started, attached: 'ended' };
    throw inSetUpWords(error, client.options.namespace);
  }
  const { run, itemsDigest } = await existing(client, workflowId);
  // Somebody may have started another one in between.
  refuseAnother(batch, itemsDigest);
  await handOver(client, taskQueue, batch, { workflowId, run, pages }, options.onPage);
  if (before?.state === 'running') return { ...started, attached: 'running' };
  return { ...started, attached: false, resumedAfter: before?.state ?? null };
}

async function handOver(
  client: Client,
  taskQueue: string,
  { batchId, items }: CheckedBatch,
  { workflowId, run, pages }: { readonly workflowId: string; readonly run: string; readonly pages: number },
  onPage: BatchOptions['onPage'],
): Promise<void> {
  let handedOver = 0;
  await eachOf(cutPages(items), AT_ONCE, async (page) => {
    await startPage(client, taskQueue, { batchWorkflowId: workflowId, batchId, run, page });
    handedOver += 1;
    onPage?.(handedOver, pages);
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
      staticSummary: pageSummary(page.number, page.items.length),
    });
  } catch (error) {
    // It was handed over before.
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

function countPages({ items }: CheckedBatch): number {
  let pages = 0;
  for (const page of cutPages(items)) pages = page.number;
  return pages;
}

async function existing(client: Client, workflowId: string) {
  const description = await describeBatch(client, workflowId);
  if (description === null) throw new TypeError('a batch is gone that was just started');
  return description;
}

function refuseAnother({ batchId, digest }: CheckedBatch, there: string | null): void {
  if (there !== null && there !== digest) throw new BatchConflictError(batchId);
}
