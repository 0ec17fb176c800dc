import {
  type BatchItem,
  type BatchSummary,
  isBatchCounts,
  isFailedItem,
  isItemEnd,
  type Tolerance,
  type TryAgain,
} from './batch';
import { boolean, type Checked, count, fields, listOf, oneOf, orNull, text } from '../checks';

/** The names that the workflows of a batch share with their callers. */
export const BATCH_WORKFLOW = 'followUpBatch';
export const BATCH_PAGE_WORKFLOW = 'followUpBatchPage';

/**
 * How long a worker may take for a workflow task of a batch or a page, in milliseconds. A worker that has lost its cache
 * replays up to 40 workflows by turns on one thread: 40 full pages take 12 s, on a slow machine five times as long, and with
 * the server's default of 10 s they ran out of time together (measured). If a worker dies in such a task, its batch or page
 * stands still for as long.
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

/** Where a batch keeps its {@link BatchMemo}. */
export const MEMO_PAGES = 'followUpBatchPages';

/** Page numbers as ranges, both ends included, in rising order: pages begin almost in order. */
export type PageRanges = readonly (readonly [from: number, to: number])[];

/** The pages that one run of a batch has begun. Any other page of this run has started no item. */
export interface BegunPages {
  readonly run: string;
  readonly pages: PageRanges;
}

/** A memo survives continue-as-new, even after the server has forgotten the first run, and is read without a worker. */
export interface BatchMemo {
  readonly batchId: string;
  readonly items: number;
  readonly pages: number;
  readonly again: TryAgain | null;
  /** What the batch runs with. A further run keeps both unless other values are given. */
  readonly concurrency: number;
  readonly tolerate: Tolerance;
  /** The earlier runs of the batch, the oldest first, then this one. */
  readonly begun: readonly BegunPages[];
}

/** The types of the failures by which a batch can end, each with the {@link BatchSummary} as its first detail. */
export type BatchFailureType = 'InvalidBatch' | 'ToleranceExceeded' | 'BatchIncomplete';

/** The input of `followUpBatch`: its items if they fit into one payload (a schedule); else the client starts each page. */
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

/** What became of the items of a page in an earlier run of the batch; items in neither list were not started. */
export const isEarlierPage = fields({
  ends: listOf(isItemEnd),
  /** The workflow ids of items that may have been started and whose end is not known. */
  left: listOf(text),
});
export type EarlierPage = Checked<typeof isEarlierPage>;

/** The result of `followUpBatchPage`. */
export interface PageResult extends EarlierPage {
  /** Items that provably were not started. */
  readonly notStarted: number;
}

/** What a page must know although no event tells it. */
export const isPageTrouble = fields({
  batchIsGone: boolean,
  /** Workflow ids of its follow-ups that no longer exist, or whose end was not delivered. */
  lost: listOf(text),
});
export type PageTrouble = Checked<typeof isPageTrouble>;

/** The state of a page, always as a whole, so that a later report replaces an earlier one. */
export const isPageReport = fields({
  run: text,
  /** Tells this page from another one of the same workflow id that was started in its place. */
  pageRun: text,
  page: count,
  after: orNull(count),
  /** How many follow-ups it could have open at most: one for each job that has items left. */
  wants: count,
  /** How many it may have open, by the latest allotment. */
  places: count,
  open: count,
  counts: isBatchCounts,
  failures: listOf(isFailedItem),
  done: boolean,
});
export type PageReport = Checked<typeof isPageReport>;

/** What a batch allots to a page, always as a whole. */
export const isAllotment = fields({
  places: count,
  /** How many failures of the page are tolerated. The place of a further one stays empty until the next allotment. */
  tolerated: orNull(count),
  /**
   * `drain` starts no further item and waits for the open ones; `leave` closes the page at once and leaves them running;
   * `cancel` cancels them and waits. A page that is done waits for `leave`.
   */
  mode: oneOf('run', 'drain', 'leave', 'cancel'),
});
export type Allotment = Checked<typeof isAllotment>;

export function noPlaces(mode: Allotment['mode']): Allotment {
  return { places: 0, tolerated: null, mode };
}

/** The answer of the query `progress` of a batch, and of its updates. */
export interface BatchProgress extends Omit<BatchSummary, 'endedAt'> {
  readonly state: 'running' | 'paused' | 'ending' | 'done' | 'failed' | 'cancelled';
  /** Why it ends, or has failed, before its items, and what helps; otherwise null. */
  readonly message: string | null;
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

const AFTER_FAILURES =
  '`batch results` prints the end of each item; `batch retry` sends what was not sent or was rejected; ' +
  'give it a higher `--tolerate` if that was exceeded';
const AFTER_STOP =
  '`batch run` with the same file continues it; open items continue unless they were cancelled too';

const NEXT_STEP = {
  running: 'nothing; `batch pause` starts no further item, `batch cancel` ends it',
  paused: 'somebody paused it; `batch resume` starts items again, and open ones continue meanwhile',
  ending: 'nothing; no further item starts, and it ends with its open items',
  done: 'nothing; `batch results` prints the end of each item',
  failed: AFTER_FAILURES,
  'tolerance-exceeded': AFTER_FAILURES,
  incomplete: AFTER_STOP,
  cancelled: AFTER_STOP,
  terminated: AFTER_STOP,
} as const;

/** What an operator can do with a batch in each state, running or ended, in the words of the starter. */
export function nextStepOfBatch(
  state: keyof typeof NEXT_STEP,
  byFailure: Readonly<Record<string, number>>,
): string {
  return state === 'done' && Object.keys(byFailure).length > 0 ? AFTER_FAILURES : NEXT_STEP[state];
}
