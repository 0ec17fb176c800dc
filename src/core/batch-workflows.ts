import type { BatchItem, BatchSummary, FailedItem, ItemEnd, Tolerance, TryAgain } from './batch';

/** The names that the workflows of a batch share with their callers. */
export const BATCH_WORKFLOW = 'followUpBatch';
export const BATCH_PAGE_WORKFLOW = 'followUpBatchPage';

/**
 * How long a worker may take for a workflow task of a batch or a page, in milliseconds. A worker that has lost its cache
 * replays up to 40 workflows at once (`CONCURRENT_WORKFLOW_TASKS`), which take turns on one thread, so that the largest are
 * all ready at the end. A full page takes 0.3 s (measured), so 40 of them take 12 s, and a slow machine may take five times
 * as long. With the server's default of 10 s, pages ran out of time together, and again each time they were repeated
 * (measured with 17 of 200 items). The price: if a worker dies in such a task, its batch or page stands still for as long.
 */
export const BATCH_TASK_TIMEOUT_MS = 60_000;

/** From a page to its batch: the state of the page. */
export const SIGNAL_REPORT = 'report';
/** From a batch to its page: how many follow-ups it may have open, and whether it goes on at all. */
export const SIGNAL_ALLOT = 'allot';

export const QUERY_BATCH_PROGRESS = 'progress';
/** Of a page: the ends of its items in the order of their arrival, from an index on. */
export const QUERY_ENDS = 'ends';

export const UPDATE_PAUSE = 'pause';
export const UPDATE_RESUME = 'resume';
export const UPDATE_SET_CONCURRENCY = 'setConcurrency';
/** Ends the batch like a cancellation, and its open follow-ups too. */
export const UPDATE_CANCEL_RUNNING = 'cancelRunning';

/** Where a cancelled batch leaves its summary. */
export const MEMO_SUMMARY = 'followUpBatch';

/** Where a batch keeps its {@link BatchMemo}: a memo survives continue-as-new, and is read without a worker. */
export const MEMO_PAGES = 'followUpBatchPages';

/** Page numbers as ranges, both ends included, in rising order: pages begin almost in order. */
export type PageRanges = readonly (readonly [from: number, to: number])[];

/** The pages that one run of a batch has begun. Any other page of this run has started no item. */
export interface BegunPages {
  readonly run: string;
  readonly pages: PageRanges;
}

/** What is known of a batch without a worker, even after the server has forgotten its first run. */
export interface BatchMemo {
  readonly batchId: string;
  readonly items: number;
  readonly pages: number;
  readonly again: TryAgain | null;
  /** What the batch runs with. A further run keeps both unless it is told otherwise. */
  readonly concurrency: number;
  readonly tolerate: Tolerance;
  /** The earlier runs of the batch, the oldest first, then this one. */
  readonly begun: readonly BegunPages[];
}

/** The types of the failures by which a batch can end, each with the {@link BatchSummary} as its first detail. */
export type BatchFailureType = 'InvalidBatch' | 'ToleranceExceeded' | 'BatchIncomplete';

/**
 * The input of `followUpBatch`. Its items are in it if they fit into one payload (a schedule). Otherwise the client starts
 * each page as a workflow of its own, which reports to this one.
 */
export interface BatchInput {
  /** @default the workflow id without `follow-up-batch:` */
  readonly batchId?: string;
  /** How many follow-ups are open at a time: 1 to 1,000. @default 50 */
  readonly concurrency?: number;
  /** Beyond it no further item is started, and the batch fails. @default null, no limit */
  readonly tolerate?: Tolerance;
  readonly items?: readonly BatchItem[];
  /** In place of `items`: how many items and pages are handed over. */
  readonly handedOver?: { readonly items: number; readonly pages: number };
  /** What the earlier runs of this batch have begun, the oldest first. @default none */
  readonly earlier?: readonly BegunPages[];
  /** @default null, what has ended keeps its end */
  readonly again?: TryAgain | null;
}

/** A part of a batch that one workflow runs. All items of a job are in it, or in a chain of pages one after the other. */
export interface BatchPage {
  /** From 1, without gaps. */
  readonly number: number;
  /** The page that must end before this one begins, which is always the previous one; otherwise null. */
  readonly after: number | null;
  /** Whether the next page waits for this one. */
  readonly followedBy: boolean;
  /** In rounds: the first item of each job, then the second of each, … */
  readonly items: readonly BatchItem[];
}

/** The input of `followUpBatchPage`. */
export interface PageInput {
  readonly batchWorkflowId: string;
  readonly batchId: string;
  /** Tells the pages of one run of the batch from those of an earlier run that was ended. */
  readonly run: string;
  readonly page: BatchPage;
  /** The workflow id of this page in the latest run of the batch that had begun it. @default null: no run had */
  readonly earlier?: string | null;
  readonly again?: TryAgain | null;
}

/** The result of `followUpBatchPage`. */
export interface PageResult {
  readonly ends: readonly ItemEnd[];
  /** The workflow ids of items that may have been started and whose end is not known. No other item was started. */
  readonly left: readonly string[];
  /** Items that provably were not started. */
  readonly notStarted: number;
}

/** What became of the items of a page in an earlier run of the batch; items in neither list were not started. */
export type EarlierPage = Pick<PageResult, 'ends' | 'left'>;

/** What a page must know although no event tells it. */
export interface PageTrouble {
  readonly batchIsGone: boolean;
  /** Workflow ids of its follow-ups that no longer exist, or whose end was not delivered. */
  readonly lost: readonly string[];
}

/** The counts of the ends of items. */
export interface BatchCounts {
  readonly settled: number;
  readonly byStatus: Readonly<Record<string, number>>;
  readonly byFailure: Readonly<Record<string, number>>;
  readonly byEvidence: Readonly<Record<string, number>>;
  readonly unknownDeliveries: number;
}

/** The state of a page, always as a whole, so that a later report replaces an earlier one. */
export interface PageReport {
  readonly run: string;
  /** Tells this page from another one of the same workflow id that was started in its place. */
  readonly pageRun: string;
  readonly page: number;
  readonly after: number | null;
  readonly followedBy: boolean;
  /** How many follow-ups it could have open at most: one for each job that has items left. */
  readonly wants: number;
  /** How many it may have open, by the latest allotment. */
  readonly places: number;
  readonly open: number;
  readonly counts: BatchCounts;
  readonly failures: readonly FailedItem[];
  readonly done: boolean;
}

/** What a batch allots to a page, always as a whole. */
export interface Allotment {
  readonly places: number;
  /** How many failures of the page are tolerated. The place of a further one stays empty until the next allotment. */
  readonly tolerated: number | null;
  /**
   * Whether the page goes on: `drain` starts no further item and waits for the open ones; `leave` closes the page at
   * once and leaves them running; `cancel` cancels them and waits. A page that is done waits for `leave`, because the
   * namespace's retention never removes an open workflow.
   */
  readonly mode: 'run' | 'drain' | 'leave' | 'cancel';
}

/** The answer of the query `progress` of a batch, and of its updates. */
export interface BatchProgress extends Omit<BatchSummary, 'endedAt'> {
  readonly state: 'running' | 'paused' | 'ending' | 'done' | 'failed' | 'cancelled';
  /** Follow-ups that run at present. */
  readonly open: number;
  readonly concurrency: number;
  /** Tells the run's pages from those of an earlier one: `{workflow id}:{run}:page-{n}`. */
  readonly run: string;
  readonly pages: { readonly total: number; readonly handedOver: number; readonly done: number };
  /** The numbers of the pages that have begun and are not done. */
  readonly openPages: readonly number[];
  /** The pages whose items have all ended. */
  readonly donePages: PageRanges;
}

/** The summary of a batch, also of one that has not ended. */
export function summaryOfProgress<EndedAt extends string | null>(progress: BatchProgress, endedAt: EndedAt) {
  const { batchId, items, settled, byStatus, byFailure, byEvidence } = progress;
  const { unknownDeliveries, firstFailures, startedAt } = progress;
  const counts = { settled, byStatus, byFailure, byEvidence, unknownDeliveries, firstFailures };
  return { batchId, items, ...counts, startedAt, endedAt };
}
