import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { BATCH_PRIORITY_KEY } from '../../contract/batch';
import {
  BATCH_PAGE_WORKFLOW,
  type BatchPage,
  type PageInput,
  type TryAgain,
} from '../../contract/batch-workflows';
import { pageSummary } from '../../contract/start-words';
import { pageWorkflowId } from '../../contract/workflow-id';
import { keywordKey } from '../description';
import { eachOf } from '../each-of';
import { attribute } from '../presentation';

/** Pages that are handed over at once: each is one call of half a megabyte at most. */
const AT_ONCE = 8;

export interface HandOver extends Pick<PageInput, 'batchWorkflowId' | 'batchId' | 'run'> {
  readonly again: TryAgain | null;
  /** Those that the batch lacks. */
  readonly pages: Iterable<BatchPage> | AsyncIterable<BatchPage>;
  /** Of how many pages in all. */
  readonly total: number;
  /** The earlier run of the batch that knows what became of a page's items; null where none has begun it. */
  readonly earlierRunOf: (page: number) => string | null;
  readonly onPage: ((handedOver: number, pages: number) => void) | undefined;
}

/** Starts the pages of a batch that are not there yet. */
export async function handOver(client: Client, taskQueue: string, batch: HandOver): Promise<void> {
  const { batchWorkflowId, batchId, run, again, total, onPage } = batch;
  let handedOver = 0;
  await eachOf(batch.pages, AT_ONCE, async (page) => {
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
      staticSummary: pageSummary(page.number, page.items.length),
    });
  } catch (error) {
    // It was handed over before.
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}
