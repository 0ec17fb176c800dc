import { checkRequest, nameProblem } from '../check-request';
import { count, isRecord, type Problem, problemText } from '../checks';
import { chunkWorkflowId, digestOf, followUpWorkflowId } from '../ids';
import type { FollowUpRequest } from '../request';
import { keyword } from '../starts';
import { counted, jsonBytes, MAX_WORKFLOW_ID_BYTES, quote, truncate } from '../text';
import { parseDuration } from '../units';

/** Items of one batch, at most. */
export const MAX_BATCH_ITEMS = 100_000;

/** Open follow-ups of one batch at a time. */
export const CONCURRENCY = { minimum: 1, maximum: 1_000, default: 50 } as const;

/** Bytes of items as JSON in a batch's own input, or in a schedule's action: a payload may have 2 MiB. */
export const MAX_INPUT_BYTES = 1_024 * 1_024;

/** Bytes of a chunk as JSON. An item with more, 1.5 MiB at most (256 KiB, each byte escaped with six), is one by itself. */
const MAX_CHUNK_BYTES = 512 * 1_024;

/** Chunks of one batch: the batch's input and its memo hold the number of the first item of each. */
export const MAX_CHUNKS = 2_000;

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

/**
 * Hexadecimal digits of an item's key: 64 bits, by which two of 100,000 items meet with a probability of 3 in
 * 10,000,000,000. A collision is refused nevertheless.
 */
const KEY_DIGITS = 16;

/** Gives the requests of a batch their keys, one after the other. They hold no line number and no option of a request. */
export class Keys {
  private readonly occurrences = new Map<string, number>();

  itemOf(request: FollowUpRequest): BatchItem {
    const { projectId, jobId, prompt, requestId } = request;
    if ((requestId ?? undefined) !== undefined) return { key: null, request };
    const message = [projectId, jobId, digestOf(prompt)] as const;
    const name = JSON.stringify(message);
    const occurrence = (this.occurrences.get(name) ?? 0) + 1;
    this.occurrences.set(name, occurrence);
    return { key: digestOf(JSON.stringify([...message, occurrence])).slice(0, KEY_DIGITS), request };
  }
}

/** The `requestId` of an item: its own, or made of the batch's id and its key. */
export function requestIdOf(batchId: string, { key, request }: BatchItem): string {
  return request.requestId ?? `${batchId}-${key ?? ''}`;
}

/** The request of an item as it is started: with its name, and with the cadence of batches. */
export function startedRequest(batchId: string, item: BatchItem) {
  const request = withBatchCadence(item.request) as FollowUpRequest;
  return { ...request, requestId: requestIdOf(batchId, item) };
}

/**
 * A request with the cadence of batches: polling begins at `BATCH_POLLING_INITIAL`, or at the caller's own maximum where
 * that is shorter. Anything else than a request stays as it is, for the checker to refuse.
 */
export function withBatchCadence(input: unknown): unknown {
  if (!isRecord(input)) return input;
  const polling = input.polling ?? {};
  if (!isRecord(polling) || (polling.initial ?? undefined) !== undefined) return input;
  const usual = parseDuration(BATCH_POLLING_INITIAL);
  const longest = parseDuration(polling.maximum);
  const isShorter = 'ms' in longest && 'ms' in usual && longest.ms < usual.ms;
  return { ...input, polling: { ...polling, initial: isShorter ? polling.maximum : BATCH_POLLING_INITIAL } };
}

/**
 * The items in the order in which a batch starts them: those of a job one after the other, as in the input, and the jobs of
 * the projects by turns. So what was begun is a number, and each project gets its share.
 */
export function inStartOrder(items: readonly BatchItem[]): BatchItem[] {
  const projects = groupsBy(items, ({ request }) => request.projectId);
  const jobs = projects.map((project) => groupsBy(project, ({ request }) => request.jobId));
  return inTurns(jobs).flat();
}

function groupsBy(items: readonly BatchItem[], keyOf: (item: BatchItem) => string): BatchItem[][] {
  const groups = new Map<string, BatchItem[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return [...groups.values()];
}

/** The first of each list, then the second of each, … */
function inTurns<T>(lists: readonly (readonly T[])[]): T[] {
  const all: T[] = [];
  let left = lists;
  for (let turn = 0; left.length > 0; turn += 1) {
    left = left.filter((list) => turn < list.length);
    for (const list of left) all.push(...list.slice(turn, turn + 1));
  }
  return all;
}

/** Cuts items, in the order of their start, into chunks. @returns the number of the first item of each, from 0 */
export function cutChunks(items: readonly BatchItem[], maxBytes: number = MAX_CHUNK_BYTES): number[] {
  const firsts: number[] = [];
  let bytes = Infinity;
  for (const [index, item] of items.entries()) {
    // With the comma behind it.
    const own = jsonBytes(item) + 1;
    bytes += own;
    if (bytes <= maxBytes) continue;
    firsts.push(index);
    bytes = own;
  }
  return firsts;
}

/** Problems that are named, and characters of one, which may quote the input. */
const MAX_PROBLEMS = 20;
const MAX_PROBLEM_CHARACTERS = 300;

/**
 * The problems of requests that a caller in any language has given to a batch; empty if they can be run.
 *
 * @param batchId a valid one: it is part of the items' names
 */
export function itemProblems(requests: readonly unknown[], batchId: string): string[] {
  const keys = new Keys();
  const names = new Map<string, number>();
  const problems = requests.flatMap((request, index) => {
    const place = index + 1;
    return problemsOf(request, place, batchId, keys, names).map((problem) => `item ${place}: ${problem}`);
  });
  const shown = problems.slice(0, MAX_PROBLEMS).map((each) => truncate(each, MAX_PROBLEM_CHARACTERS));
  const more = problems.length - shown.length;
  return more > 0 ? [...shown, `… and ${more} more`] : shown;
}

/** A name for the checker, as long as the one that the batch makes. */
function nameOfItem(batchId: string): string {
  return `${batchId}-${'x'.repeat(KEY_DIGITS)}`;
}

function problemsOf(
  request: unknown,
  place: number,
  batchId: string,
  keys: Keys,
  names: Map<string, number>,
): string[] {
  const isNamed = isRecord(request) && (request.requestId ?? undefined) !== undefined;
  const whole = withBatchCadence(request);
  const checked = checkRequest(
    isRecord(whole) && !isNamed ? { ...whole, requestId: nameOfItem(batchId) } : whole,
  );
  if (!checked.ok) return checked.problems.map((problem) => problemText(problem));
  const { projectId, jobId } = checked.plan;
  const name = followUpWorkflowId(
    projectId,
    jobId,
    requestIdOf(batchId, keys.itemOf(request as FollowUpRequest)),
  );
  const other = names.get(name);
  names.set(name, place);
  return other === undefined ? [] : [`is the same follow-up as item ${other}: give each its own requestId`];
}

/** Characters of a batch id: with a hyphen and an item's key it must still be a valid `requestId`. */
export const MAX_BATCH_ID_CHARACTERS = 100;

/** Why a value is not a batch id; undefined if it is. */
export function batchIdProblem(batchId: unknown): string | undefined {
  const problem = nameProblem(batchId, MAX_BATCH_ID_CHARACTERS);
  if (problem !== undefined || typeof batchId !== 'string') return problem;
  // Percent-encoded, so one byte a character.
  const bytes = chunkWorkflowId(batchId, 'x'.repeat(64), MAX_CHUNKS).length;
  return bytes <= MAX_WORKFLOW_ID_BYTES
    ? undefined
    : `is too long: percent-encoded it would make workflow ids of ${bytes} bytes, and at most ${MAX_WORKFLOW_ID_BYTES} are possible; shorten it, or use letters and digits, which are not encoded`;
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

/** What the start of a batch and of its chunks have in common. */
export function batchStart(batchId: string) {
  return {
    typedSearchAttributes: [keyword('FollowUpBatch', batchId)],
    priority: { priorityKey: BATCH_PRIORITY_KEY },
  };
}

export function batchSummary(items: number): string {
  return `Batch of ${counted(items, 'follow-up')}`;
}
