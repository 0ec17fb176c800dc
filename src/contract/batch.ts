import type { Evidence, Verdict } from './delivery';
import type { TerminalStatus } from './job';
import type { FollowUpRequest } from './request';
import type { FailureType } from './result';

/** Items of one batch, at most. */
export const MAX_BATCH_ITEMS = 100_000;

/** Open follow-ups of one batch at a time. */
export const CONCURRENCY = { minimum: 1, maximum: 1_000, default: 50 } as const;

/** Items of one page. With some ten events an item, a page stays far below the 51,200 events of a workflow. */
export const MAX_PAGE_ITEMS = 200;

/** Bytes of one page as JSON: a page is one payload (2 MiB at most), and its items lie once more in its history. */
export const MAX_PAGE_BYTES = 512 * 1_024;

/** Pages of one batch. What a batch knows of each must fit into one payload when it continues as new. */
export const MAX_PAGES = 10_000;

/** Bytes of the items of a schedule as JSON: its action is one payload, which the server keeps with the schedule. */
export const MAX_SCHEDULE_BYTES = 1_024 * 1_024;

/** Where a batch's items begin to poll unless told otherwise: nobody waits at a screen for one of thousands. */
export const BATCH_POLLING_INITIAL = '30s';

/** The default priority of Temporal is 3; a larger number waits for the smaller ones. */
export const BATCH_PRIORITY_KEY = 4;

/** One follow-up of a batch. Its `requestId` is its own, or made of the batch's id and its key. */
export interface BatchItem {
  /**
   * A short hash of project, job, prompt and occurrence number, so that it does not depend on the line. Null where the
   * request has a `requestId` of its own.
   */
  readonly key: string | null;
  readonly request: FollowUpRequest;
  /** The SHA-256 of the prompt, in hexadecimal digits: a workflow can't compute it. */
  readonly promptDigest: string;
}

/** How many failures a batch tolerates: so many items, or a percentage of all; null for any number. */
export type Tolerance = { readonly items: number } | { readonly percent: number } | null;

/** Every end that an item can have. */
export type ItemOutcome =
  | TerminalStatus
  | FailureType
  | 'cancelled'
  | 'terminated'
  | 'timed-out'
  /** A follow-up of this name is there, and it carries another prompt. */
  | 'conflict'
  /** Its follow-up may have been started, and is no longer there: deleted, or older than the namespace's retention. */
  | 'gone'
  /** The batch was cancelled with what it runs, and this follow-up was started by somebody else: it goes on. */
  | 'left-running'
  /** It failed by something that is no failure of a follow-up: a bug. */
  | 'broken';

/** Whether an end counts against the tolerance: every end but `completed` and `archived`. */
export function isFailure({ outcome }: { readonly outcome: ItemOutcome }): boolean {
  return outcome !== 'completed' && outcome !== 'archived';
}

/** How one item of a batch ended. */
export interface ItemEnd {
  readonly workflowId: string;
  readonly projectId: string;
  readonly jobId: string;
  readonly requestId: string;
  readonly outcome: ItemOutcome;
  /** Null where nobody can tell: a terminated follow-up leaves no receipt. */
  readonly delivery: Verdict | null;
  readonly evidence: Evidence | null;
  readonly prLink: string | null;
  /** What went wrong, in words; null for a result. At most 300 characters. */
  readonly message: string | null;
  /** ISO 8601, UTC: when the batch heard of the end. */
  readonly settledAt: string;
}

/** The result of `followUpBatch`: a summary, never the items themselves. */
export interface BatchSummary {
  readonly batchId: string;
  readonly items: number;
  readonly settled: number;
  readonly byStatus: Readonly<Record<string, number>>;
  readonly byFailure: Readonly<Record<string, number>>;
  readonly byEvidence: Readonly<Record<string, number>>;
  readonly unknownDeliveries: number;
  /** At most 20. */
  readonly firstFailures: readonly FailedItem[];
  readonly startedAt: string;
  readonly endedAt: string;
}

export type FailedItem = Pick<ItemEnd, 'workflowId' | 'outcome' | 'message'>;
