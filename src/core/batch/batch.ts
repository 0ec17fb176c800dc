import { checkRequest, nameProblem } from '../check-request';
import {
  type Checked,
  count,
  fields,
  isRecord,
  mapOf,
  oneOf,
  orNull,
  type Problem,
  problemText,
  text,
} from '../checks';
import { followUpWorkflowId, pageWorkflowId, RUN_CHARACTERS } from '../ids';
import { isTerminal, TERMINAL_STATUSES, terminalMeaning } from '../job';
import type { FollowUpRequest } from '../request';
import {
  FAILURE_TYPES,
  isEvidence,
  isFailureDetails,
  isFollowUpResult,
  isReceipt,
  isVerdict,
  mayBeRetried,
  type Receipt,
} from '../result';
import { MAX_WORKFLOW_ID_BYTES, quote, truncate } from '../text';

/** Items of one batch, at most. */
export const MAX_BATCH_ITEMS = 100_000;

/** Open follow-ups of one batch at a time. */
export const CONCURRENCY = { minimum: 1, maximum: 1_000, default: 50 } as const;

/**
 * Items of one page. A worker that takes a page over replays it, some 6 ms for each item (measured), within
 * `BATCH_TASK_TIMEOUT_MS`. From the first release on, this number and the next one stay: a batch that runs again cuts the
 * same pages, and takes over what each of them has done.
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

/** One follow-up of a batch. */
export interface BatchItem {
  /** A short hash of project, job, prompt and occurrence number; null if the request has a `requestId` of its own. */
  readonly key: string | null;
  readonly request: FollowUpRequest;
}

/** How many failures a batch tolerates: a number of items, or a percentage of all; null for any number. */
export type Tolerance = { readonly items: number } | { readonly percent: number } | null;

/** Every end that an item can have. */
export const ITEM_OUTCOMES = [
  ...TERMINAL_STATUSES,
  ...FAILURE_TYPES,
  ...(['cancelled', 'terminated', 'timed-out'] as const),
  /** A follow-up of this name exists, and it carries another prompt. */
  'conflict',
  /** Its follow-up may have been started, and no longer exists: deleted, or older than the namespace's retention. */
  'gone',
  /** The batch was cancelled with its open items, but somebody else started this follow-up: it continues. */
  'left-running',
  /** It failed with something other than a failure of a follow-up: a bug. */
  'broken',
] as const;
export type ItemOutcome = (typeof ITEM_OUTCOMES)[number];

/** Whether an end counts against the tolerance: every end but `completed` and `archived` (see `TERMINAL` in `job.ts`). */
export function isFailure({ outcome }: { readonly outcome: ItemOutcome }): boolean {
  return terminalMeaning(outcome)?.isFailure ?? true;
}

const end = {
  outcome: oneOf(...ITEM_OUTCOMES),
  /** Null if nobody can tell: a terminated follow-up leaves no receipt. */
  delivery: orNull(isVerdict),
  evidence: orNull(isEvidence),
  prLink: orNull(text),
  /** What went wrong, in words; null for a result. At most 300 characters. */
  message: orNull(text),
};

export const isEndOfItem = fields(end);
export type EndOfItem = Checked<typeof isEndOfItem>;

/** Characters of a failure's message in a page: those of all its items lie in one payload, its result. */
const MAX_MESSAGE_CHARACTERS = 300;

export function endOfResult(result: unknown): EndOfItem {
  if (!isFollowUpResult(result) || !isTerminal(result.status))
    return without('broken', 'Its result is no job with a receipt.');
  const { status, prLink, followUp } = result;
  return { outcome: status, ...knownBy(followUp), prLink, message: null };
}

/** The ends without a receipt, in words. */
const WORDS = {
  terminated: 'Somebody terminated the follow-up.',
  'timed-out': 'The workflow ran into its time limit.',
  gone:
    'The follow-up no longer exists (deleted, or older than the retention of the namespace): nobody can tell whether its ' +
    'message was sent. It was not started again.',
  'left-running': 'Somebody else started this follow-up; it continues.',
} as const;

export function endWithoutReceipt(outcome: keyof typeof WORDS): EndOfItem {
  return without(outcome, WORDS[outcome]);
}

export function endOfCancelled(receipt: unknown): EndOfItem {
  const end = without('cancelled', 'Somebody cancelled the follow-up.');
  return isReceipt(receipt) ? { ...end, ...knownBy(receipt) } : end;
}

/**
 * @param isCompared whether its prompt is known to differ; otherwise nothing is left to compare
 * @param isForeign whether the item was never started; otherwise its own follow-up, deleted since, may have sent its message
 */
export function endOfConflict(isCompared: boolean, isForeign: boolean): EndOfItem {
  if (!isCompared)
    return without('conflict', 'A follow-up of this name exists, and its prompt can no longer be compared.');
  const words = 'A follow-up of this name carries another prompt';
  return isForeign
    ? { ...without('conflict', `${words}; nothing was sent.`), delivery: 'not-sent' }
    : without('conflict', `${words}. Nobody can tell whether an earlier one sent this one.`);
}

/** The end of an item that could not even be started, or whose end can't be read. */
export function brokenEnd(message: string): EndOfItem {
  return without('broken', message);
}

/** @param failure only an `ApplicationFailure` has a type and details */
export function endOfFailure(
  failure: Error & { readonly type?: string | null; readonly details?: readonly unknown[] | null },
): EndOfItem {
  const { type, message, details } = failure;
  const known = FAILURE_TYPES.find((each) => each === type);
  const detail = details?.[0];
  if (known === undefined || !isFailureDetails(detail)) return brokenEnd(message);
  const { job, followUp } = detail;
  return { ...without(known, message), ...knownBy(followUp), prLink: job?.prLink ?? null };
}

function knownBy({ delivery, evidence }: Receipt) {
  return { delivery: delivery.verdict, evidence };
}

function without(outcome: ItemOutcome, message: string): EndOfItem {
  // A foreign program's words may hold half a character, which would end the worker (sdk-core 1.24).
  const words = truncate(message, MAX_MESSAGE_CHARACTERS).toWellFormed();
  return { outcome, delivery: null, evidence: null, prLink: null, message: words };
}

/** How one item of a batch ended. */
export const isItemEnd = fields({
  ...{ workflowId: text, projectId: text, jobId: text, requestId: text, ...end },
  /** ISO 8601, UTC: when the batch learnt of the end. */
  settledAt: text,
});
export type ItemEnd = Checked<typeof isItemEnd>;

export const isBatchCounts = fields({
  settled: count,
  byStatus: mapOf(count),
  byFailure: mapOf(count),
  byEvidence: mapOf(count),
  unknownDeliveries: count,
});
export type BatchCounts = Checked<typeof isBatchCounts>;

/** The result of `followUpBatch`: a summary, never the items themselves. */
export interface BatchSummary extends BatchCounts {
  readonly batchId: string;
  readonly items: number;
  /** At most 20. */
  readonly firstFailures: readonly FailedItem[];
  readonly startedAt: string;
  readonly endedAt: string;
}

export const isFailedItem = fields({ workflowId: text, outcome: end.outcome, message: end.message });
export type FailedItem = Checked<typeof isFailedItem>;

/** Problems that are named, and characters of one, which may quote the input. */
const MAX_PROBLEMS = 20;
const MAX_PROBLEM_CHARACTERS = 300;

/**
 * The problems of a batch's items, whoever made them; empty if they can be run.
 *
 * @param batchId a valid one: it is part of the items' names
 */
export function itemProblems(items: readonly unknown[], batchId: string): string[] {
  const names = new Map<string, number>();
  const problems = items.flatMap((item, index) =>
    problemsOf(item, index + 1, batchId, names).map((problem) => `item ${index + 1}: ${problem}`),
  );
  const shown = problems.slice(0, MAX_PROBLEMS).map((each) => truncate(each, MAX_PROBLEM_CHARACTERS));
  const more = problems.length - shown.length;
  return more > 0 ? [...shown, `… and ${more} more`] : shown;
}

function problemsOf(item: unknown, place: number, batchId: string, names: Map<string, number>): string[] {
  const { key, request } = isRecord(item) ? item : {};
  if (!isRecord(request)) return ['must be { "key", "request" }, the request an object'];
  const isNamed = (request.requestId ?? undefined) !== undefined;
  if (!isNamed && (typeof key !== 'string' || key === '' || !key.isWellFormed()))
    return ['key: must be a text, because the request has no requestId'];
  const requestId: unknown = isNamed ? request.requestId : `${batchId}-${String(key)}`;
  const checked = checkRequest({ ...request, requestId });
  if (!checked.ok) return checked.problems.map((problem) => problemText(problem));
  const { projectId, jobId } = checked.plan;
  const name = followUpWorkflowId(projectId, jobId, requestIdOf(batchId, item as BatchItem));
  const other = names.get(name);
  names.set(name, place);
  return other === undefined ? [] : [`is the same follow-up as item ${other}: give it its own key`];
}

/** Which items of an earlier run start again: those provably not sent or rejected, or also those of unknown delivery. */
export const TRY_AGAIN = ['unsent', 'unsent-or-unknown'] as const;
export type TryAgain = (typeof TRY_AGAIN)[number];

/** Whether an item that ended this way is started again; null for a run that is no retry. Its receipt alone decides. */
export function mayTryAgain({ outcome, delivery }: EndOfItem, again: TryAgain | null): boolean {
  // The name belongs to somebody else's message.
  if (again === null || outcome === 'conflict') return false;
  if (mayBeRetried(delivery)) return true;
  return again === 'unsent-or-unknown' && (delivery === 'unknown' || delivery === null);
}

/** Characters of a batch id: with a hyphen and an item's key it must still be a valid `requestId`. */
export const MAX_BATCH_ID_CHARACTERS = 100;

/** Why a value is not a batch id; undefined if it is. */
export function batchIdProblem(batchId: unknown): string | undefined {
  const problem = nameProblem(batchId, MAX_BATCH_ID_CHARACTERS);
  if (problem !== undefined || typeof batchId !== 'string') return problem;
  // Percent-encoded, so one byte a character. There can't be more pages than items.
  const bytes = pageWorkflowId(batchId, 'x'.repeat(RUN_CHARACTERS), MAX_BATCH_ITEMS).length;
  return bytes <= MAX_WORKFLOW_ID_BYTES
    ? undefined
    : `is too long: percent-encoded it would make workflow ids of ${bytes} bytes, and at most ${MAX_WORKFLOW_ID_BYTES} are possible; shorten it, or use letters and digits, which are not encoded`;
}

/** The `requestId` of an item: its own, or made of the batch's id and its key. */
export function requestIdOf(batchId: string, { key, request }: BatchItem): string {
  return request.requestId ?? `${batchId}-${key ?? ''}`;
}

/** What is wrong with the settings of a batch, whoever gives them. */
export function settingProblems(concurrency: unknown, tolerate: unknown): Problem[] {
  const problems: Problem[] = [];
  const { minimum, maximum } = CONCURRENCY;
  if (!count(concurrency) || concurrency < minimum || concurrency > maximum) {
    const words = `must be a whole number from ${minimum} to ${maximum}; it is ${quote(concurrency)}`;
    problems.push({ field: 'concurrency', text: words });
  }
  if (!isTolerance(tolerate)) {
    const words = `must be { "items": N } or { "percent": P }, P from 0 to 100 (for the starter N or P%), or null; it is ${quote(tolerate)}`;
    problems.push({ field: 'tolerate', text: words });
  }
  return problems;
}

function isTolerance(value: unknown): value is Tolerance {
  if (value === null) return true;
  if (!isRecord(value) || Object.keys(value).length !== 1) return false;
  const { items, percent } = value;
  return count(items) || (typeof percent === 'number' && percent >= 0 && percent <= 100);
}
