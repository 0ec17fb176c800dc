import { MAX_WORKFLOW_ID_BYTES, truncate } from './text';

import { checkRequest } from './check-request';
import { isRecord, typeName } from './json';
import { followUpWorkflowId, pageWorkflowId, RUN_CHARACTERS } from './ids';
import type { TerminalStatus } from './job';
import { problemText } from './problem';
import type { FollowUpRequest } from './request';
import type { Evidence, FailureType, Verdict } from './result';

/** Items of one batch, at most. */
export const MAX_BATCH_ITEMS = 100_000;

/** Open follow-ups of one batch at a time. */
export const CONCURRENCY = { minimum: 1, maximum: 1_000, default: 50 } as const;

/**
 * Items of one page. A worker that takes a page over replays it, which takes some 6 ms for each item (measured), and the
 * server gives it `BATCH_TASK_TIMEOUT_MS`. From the first release on, this number and the next one stay: a batch that runs
 * again cuts the same pages, and takes over what each of them has done.
 */
export const MAX_PAGE_ITEMS = 50;

/** Bytes of one page as JSON: a page is one payload (2 MiB at most), and its history holds its items once more. */
export const MAX_PAGE_BYTES = 512 * 1_024;

/** Pages of one batch. What a batch knows of each must fit into one payload when it continues as new. */
export const MAX_PAGES = 5_000;

/** Bytes of the items of a schedule as JSON: its action is one payload, which the server keeps with the schedule. */
export const MAX_SCHEDULE_BYTES = 1_024 * 1_024;

/** The default of `polling.initial` for items of a batch: nobody waits at a screen for one of thousands. */
export const BATCH_POLLING_INITIAL = '30s';

/** The default priority of Temporal is 3; tasks with a larger number wait for those with a smaller one. */
export const BATCH_PRIORITY_KEY = 4;

/** One follow-up of a batch. Its `requestId` is its own, or made of the batch's id and its key. */
export interface BatchItem {
  /**
   * A short hash of project, job, prompt and occurrence number, so that it does not depend on the line. Null if the
   * request has a `requestId` of its own.
   */
  readonly key: string | null;
  readonly request: FollowUpRequest;
  /** The SHA-256 of the prompt, in hexadecimal digits: a workflow can't compute it. */
  readonly promptDigest: string;
}

/** How many failures a batch tolerates: a number of items, or a percentage of all; null for any number. */
export type Tolerance = { readonly items: number } | { readonly percent: number } | null;

/** Every end that an item can have. */
export type ItemOutcome =
  | TerminalStatus
  | FailureType
  | 'cancelled'
  | 'terminated'
  | 'timed-out'
  /** A follow-up of this name exists, and it carries another prompt. */
  | 'conflict'
  /** Its follow-up may have been started, and no longer exists: deleted, or older than the namespace's retention. */
  | 'gone'
  /** The batch was cancelled with its open items, but somebody else started this follow-up: it goes on. */
  | 'left-running'
  /** It failed with something other than a failure of a follow-up: a bug. */
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
  /** Null if nobody can tell: a terminated follow-up leaves no receipt. */
  readonly delivery: Verdict | null;
  readonly evidence: Evidence | null;
  readonly prLink: string | null;
  /** What went wrong, in words; null for a result. At most 300 characters. */
  readonly message: string | null;
  /** ISO 8601, UTC: when the batch learnt of the end. */
  readonly settledAt: string;
}

/** An end without its item. */
export type EndOfItem = Pick<ItemEnd, 'outcome' | 'delivery' | 'evidence' | 'prLink' | 'message'>;

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

/** How many problems are listed; further ones are only counted. */
const MAX_PROBLEMS = 20;

/** Characters of one problem, which may quote the input. */
const MAX_PROBLEM_CHARACTERS = 300;

const SHAPE = 'an item is { "key", "request", "promptDigest" }';

/**
 * The problems of a batch's items, whoever made them; empty if they can be run.
 *
 * @param batchId a valid one: it is part of the items' names
 */
export function itemProblems(items: readonly unknown[], batchId: string): string[] {
  const problems: string[] = [];
  let count = 0;
  const names = new Map<string, number>();
  for (const [index, item] of items.entries()) {
    for (const problem of problemsOf(item, index + 1, batchId, names)) {
      count += 1;
      if (count <= MAX_PROBLEMS)
        problems.push(truncate(`item ${index + 1}: ${problem}`, MAX_PROBLEM_CHARACTERS));
    }
  }
  if (count > MAX_PROBLEMS) problems.push(`… and ${count - MAX_PROBLEMS} more`);
  return problems;
}

function problemsOf(item: unknown, place: number, batchId: string, names: Map<string, number>): string[] {
  if (!isRecord(item)) return [`must be an object, not ${typeName(item)}; ${SHAPE}`];
  const { key, request, promptDigest } = item;
  if (!isRecord(request)) return [`request: must be an object, not ${typeName(request)}; ${SHAPE}`];
  if (typeof promptDigest !== 'string' || !/^[0-9a-f]{64}$/.test(promptDigest))
    return ['promptDigest: must be the SHA-256 of the prompt, 64 hexadecimal digits'];
  const isNamed = (request.requestId ?? undefined) !== undefined;
  if (!isNamed && (typeof key !== 'string' || key === '' || !key.isWellFormed()))
    return ['key: must be a text, because the request has no requestId of its own'];
  const requestId: unknown = isNamed ? request.requestId : `${batchId}-${String(key)}`;
  const checked = checkRequest({ ...request, requestId });
  if (!checked.ok) return checked.problems.map((problem) => problemText(problem));
  const { projectId, jobId } = checked.plan;
  const name = followUpWorkflowId(projectId, jobId, requestIdOf(batchId, item as unknown as BatchItem));
  const other = names.get(name);
  names.set(name, place);
  return other === undefined ? [] : [`is the same follow-up as item ${other}: give it a key of its own`];
}

/**
 * Whether an item that ended this way is started again; null is a run that is no retry. Its receipt alone decides: without one nobody can tell whether
 * its message arrived.
 */
export function mayTryAgain(
  { outcome, delivery }: Pick<ItemEnd, 'outcome' | 'delivery'>,
  again: TryAgain | null,
): boolean {
  // The name belongs to somebody else's message.
  if (again === null || outcome === 'conflict') return false;
  if (delivery === 'not-sent' || delivery === 'rejected') return true;
  return again === 'unsent-or-unknown' && (delivery === 'unknown' || delivery === null);
}

/** Characters of a batch id: with a hyphen and an item's key it must still be a valid `requestId`. */
export const MAX_BATCH_ID_CHARACTERS = 100;

/**
 * Why a text is not a valid batch id; undefined if it is valid: 1 to 100 characters, no control characters, no lone
 * surrogates, and percent-encoded short enough for the workflow ids of the batch's pages.
 */
export function batchIdProblem(batchId: unknown): string | undefined {
  if (typeof batchId !== 'string') return `must be a text, not of type ${typeof batchId}`;
  if (batchId === '') return `must not be empty; give 1 to ${MAX_BATCH_ID_CHARACTERS} characters`;
  const length = Array.from(batchId).length;
  if (length > MAX_BATCH_ID_CHARACTERS)
    return `must have at most ${MAX_BATCH_ID_CHARACTERS} characters; it has ${length}`;
  if (!batchId.isWellFormed()) return 'must not hold a lone surrogate: it has no UTF-8 form';
  if (/\p{Cc}/u.test(batchId)) return 'must not hold control characters';
  // Percent-encoded, hence one byte a character. There can't be more pages than items.
  const bytes = pageWorkflowId(batchId, 'x'.repeat(RUN_CHARACTERS), MAX_BATCH_ITEMS).length;
  if (bytes > MAX_WORKFLOW_ID_BYTES)
    return `is too long: percent-encoded it would make workflow ids of ${bytes} bytes, and at most ${MAX_WORKFLOW_ID_BYTES} are possible; shorten it, or use letters and digits, which are not encoded`;
  return undefined;
}

/** The `requestId` of an item: its own, or made of the batch's id and its key. */
export function requestIdOf(batchId: string, item: Pick<BatchItem, 'key' | 'request'>): string {
  return item.request.requestId ?? `${batchId}-${item.key ?? ''}`;
}

/** Whether a value that somebody else has set is a tolerance. */
export function isTolerance(value: unknown): value is Tolerance {
  if (value === null) return true;
  if (!isRecord(value)) return false;
  const { items, percent } = value;
  if ('items' in value) return Number.isSafeInteger(items) && (items as number) >= 0;
  return typeof percent === 'number' && percent >= 0 && percent <= 100;
}

/**
 * Which items of an earlier run of the batch are started again: those whose message provably was not sent or was rejected,
 * or also those whose delivery is unknown.
 */
export const TRY_AGAIN = ['unsent', 'unsent-or-unknown'] as const;

export type TryAgain = (typeof TRY_AGAIN)[number];
