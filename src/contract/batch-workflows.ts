import type { BatchItem, BatchSummary, FailedItem, ItemEnd, Tolerance } from './batch';

/** The names by which the workflows of a batch and their callers know each other. */
export const BATCH_WORKFLOW = 'followUpBatch';
export const BATCH_PAGE_WORKFLOW = 'followUpBatchPage';

/** From a page to its batch: where it stands. */
export const SIGNAL_REPORT = 'report';
/** From a batch to its page: how many follow-ups it may have open, and whether it goes on at all. */
export const SIGNAL_ALLOT = 'allot';

export const QUERY_BATCH_PROGRESS = 'progress';
/** Of a page: the ends of its items in the order in which they came, from a number on. */
export const QUERY_ENDS = 'ends';

export const UPDATE_PAUSE = 'pause';
export const UPDATE_RESUME = 'resume';
export const UPDATE_SET_CONCURRENCY = 'setConcurrency';
/** Ends the batch as a cancellation does, and its open follow-ups with it. */
export const UPDATE_CANCEL_RUNNING = 'cancelRunning';

/** Where a cancelled batch leaves its summary. */
export const MEMO_SUMMARY = 'followUpBatch';

/** The types of the failures by which a batch can end, each with the {@link BatchSummary} as its first detail. */
export const BATCH_FAILURE_TYPES = ['InvalidBatch', 'ToleranceExceeded', 'BatchIncomplete'] as const;
export type BatchFailureType = (typeof BATCH_FAILURE_TYPES)[number];

/**
 * The input of `followUpBatch`. Its items come with it, where they fit into one payload (a schedule); or page by page,
 * each page being a workflow of its own that its client starts and that reports here.
 */
export interface BatchInput {
  /** @default the workflow id without `follow-up-batch:` */
  readonly batchId?: string;
  /** How many follow-ups are open at a time: 1 to 1,000. @default 50 */
  readonly concurrency?: number;
  /** Beyond it no further item is started, and the batch fails. @default null, which is any number */
  readonly tolerate?: Tolerance;
  readonly items?: readonly BatchItem[];
  /** In place of `items`: how many items and pages are handed over. */
  readonly handedOver?: { readonly items: number; readonly pages: number };
}

/** A part of a batch that one workflow runs. All items of a job are in it, or in a chain of pages one after the other. */
export interface BatchPage {
  /** From 1, without gaps. */
  readonly number: number;
  /** The page that must have ended before this one begins, which is always the one before; else null. */
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
}

/** The result of `followUpBatchPage`. */
export interface PageResult {
  readonly ends: readonly ItemEnd[];
  /** Items that were not started, because the batch was ended before. */
  readonly notStarted: number;
}

/** What the ends of items add up to. */
export interface BatchCounts {
  readonly settled: number;
  readonly byStatus: Readonly<Record<string, number>>;
  readonly byFailure: Readonly<Record<string, number>>;
  readonly byEvidence: Readonly<Record<string, number>>;
  readonly unknownDeliveries: number;
}

/** Where a page stands; always as a whole, so that a later report replaces an earlier one. */
export interface PageReport {
  readonly run: string;
  readonly workflowId: string;
  readonly page: number;
  readonly after: number | null;
  readonly followedBy: boolean;
  /** How many follow-ups it could have open at most: one for each job that has items left. */
  readonly wants: number;
  /** How many it may have open, as it was last told. */
  readonly places: number;
  readonly open: number;
  readonly counts: BatchCounts;
  readonly failures: readonly FailedItem[];
  readonly done: boolean;
}

/** What a batch tells a page; always as a whole. */
export interface Allotment {
  readonly places: number;
  /** So many of the page's failures are within the tolerance: the place of a further one stays empty until told. */
  readonly tolerated: number | null;
  /**
   * Whether the page goes on: `drain` starts no further item and waits for the open ones; `leave` ends at once and
   * leaves them running; `cancel` cancels them and waits.
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
  /** The numbers of the pages that have follow-ups open. */
  readonly openPages: readonly number[];
}

/** How a follow-up that was there before its batch has ended, as an activity finds it. */
export type FoundEnd =
  | { readonly kind: 'result'; readonly result: unknown }
  | { readonly kind: 'failure'; readonly type: string; readonly message: string; readonly details: unknown }
  | { readonly kind: 'cancelled'; readonly receipt: unknown }
  | { readonly kind: 'terminated' }
  | { readonly kind: 'timed-out' }
  | { readonly kind: 'conflict' };
