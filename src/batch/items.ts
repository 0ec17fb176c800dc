import { checkRequest, nameProblem } from '../contract/check-request';
import { count, isRecord, type JsonObject, type Problem } from '../contract/checks';
import { canonicalId, chunkWorkflowId, sha256Hex, followUpWorkflowId } from '../contract/ids';
import { getField, type FollowUpRequest, REQUEST_FIELDS, buildRequest } from '../contract/request';
import { keywordAttribute } from '../contract/follow-up-start-options';
import { pluralize, jsonByteLength, MAX_WORKFLOW_ID_BYTES, quote, utf8ByteLength } from '../contract/text';
import { parseDuration } from '../contract/duration';

/** The maximum number of items of one batch. */
export const MAX_BATCH_ITEMS = 100_000;

/** The limits of the number of follow-ups that run at the same time. */
export const CONCURRENCY = { minimum: 1, maximum: 1_000, default: 50 } as const;

/** The maximum size of the items as JSON in the input of a batch's workflow. A Temporal payload may have 2 MiB. */
export const MAX_INPUT_BYTES = 1_024 * 1_024;

/**
 * The maximum size of a chunk as JSON. A larger item is a chunk by itself. An item has at most 1.5 MiB, if JSON escapes each byte
 * of the prompt with six bytes.
 */
const MAX_CHUNK_BYTES = 512 * 1_024;

/** The maximum number of chunks of one batch. The batch's input has the number of the first item of each chunk. */
export const MAX_CHUNKS = 2_000;

/**
 * The default of `polling.initial` for batch items. The interval is longer, because no caller waits for a single item of
 * thousands.
 */
export const BATCH_POLLING_INITIAL = '30s';

/** The priority of batch items. Temporal's default is 3, and tasks with a larger number wait for tasks with a smaller number. */
export const BATCH_PRIORITY = { priorityKey: 4 };

export interface BatchItem {
  /** A short hash of project, job, prompt and the item's number (1, 2, …) among the items with this message; null with a `requestId`. */
  readonly key: string | null;
  readonly request: FollowUpRequest;
}

/**
 * The maximum number of items that may fail before the batch stops, as a number of items or as a percentage of all items. The
 * value is null if the number is not limited.
 */
export type MaxFailures = { readonly items: number } | { readonly percent: number } | null;

/**
 * The number of hexadecimal digits of an item's key. The probability that two of 100,000 items have the same key is 3 in 10
 * billion. Such items are rejected.
 */
const KEY_DIGITS = 16;

/**
 * Makes batch items from requests. Equal requests become equal JSON. Clients also call this function for a batch whose input the
 * workflow rejected. The requests may then be any values.
 *
 * @param reportRepeat is called for each request without a `requestId` whose message an earlier request has; both are numbered from 0
 */
export function toBatchItems(
  requests: readonly FollowUpRequest[],
  reportRepeat: (request: number, earlier: number) => void = () => undefined,
): BatchItem[] {
  // The map has a digest of each prompt, because 100,000 prompts may have 200 MB.
  const messages = new Map<string, { readonly first: number; occurrences: number }>();
  return requests.map((each, index) => {
    const tidy = { ...(withBatchPolling(each) as JsonObject) };
    const fields = Object.keys(REQUEST_FIELDS).map((field) => [field, getField(tidy, field)] as const);
    const request = buildRequest(fields) as unknown as FollowUpRequest;
    const { projectId, jobId, prompt, requestId } = request;
    if (requestId !== undefined) return { key: null, request };
    const message = [canonicalId(projectId), canonicalId(jobId), sha256Hex(prompt)];
    const name = JSON.stringify(message);
    const known = messages.get(name) ?? { first: index, occurrences: 0 };
    messages.set(name, known);
    known.occurrences += 1;
    if (known.occurrences > 1) reportRepeat(index, known.first);
    const key = sha256Hex(JSON.stringify([...message, known.occurrences])).slice(0, KEY_DIGITS);
    return { key, request };
  });
}

export function toItemRequestId(batchId: string, { key, request }: BatchItem): string {
  return request.requestId ?? `${batchId}-${key ?? ''}`;
}

function withBatchPolling(input: unknown): unknown {
  if (!isRecord(input)) return input;
  const polling = input.polling ?? {};
  if (!isRecord(polling) || (polling.initial ?? undefined) !== undefined) return input;
  const defaultInterval = parseDuration(BATCH_POLLING_INITIAL);
  const longest = parseDuration(polling.maximum);
  const isShorter = 'ms' in longest && 'ms' in defaultInterval && longest.ms < defaultInterval.ms;
  return { ...input, polling: { ...polling, initial: isShorter ? polling.maximum : BATCH_POLLING_INITIAL } };
}

/**
 * Sorts items by the order in which they start. The items of one job are next to each other, in the order of the input. The first
 * job of each project comes first, then the second job of each project, and so on.
 */
export function sortByStartOrder(items: readonly BatchItem[]): BatchItem[] {
  const projects = groupsBy(items, ({ request }) => canonicalId(request.projectId));
  const jobs = projects.flatMap((project) =>
    groupsBy(project, ({ request }) => canonicalId(request.jobId)).map((job, position) => ({
      job,
      position,
    })),
  );
  return jobs.sort((one, other) => one.position - other.position).flatMap(({ job }) => job);
}

function groupsBy<T>(items: readonly T[], keyOf: (item: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item)) ?? [];
    group.push(item);
    groups.set(keyOf(item), group);
  }
  return [...groups.values()];
}

/** Cuts items into chunks, in the order in which they start. @returns the number of the first item of each chunk, from 0 */
export function cutChunks(items: readonly BatchItem[], maxBytes: number = MAX_CHUNK_BYTES): number[] {
  const firsts: number[] = [];
  let bytes = Infinity;
  for (const [index, item] of items.entries()) {
    // Each item needs one more byte for a comma.
    const itemBytes = jsonByteLength(item) + 1;
    bytes += itemBytes;
    if (bytes <= maxBytes) continue;
    firsts.push(index);
    bytes = itemBytes;
  }
  return firsts;
}

/**
 * Checks the items of a batch.
 *
 * @param batchId the batch ID, which is part of the items' request IDs. If the ID is not known yet, any text of the same length is
 * valid.
 * @param maxProblems the number of problems after which the check ends
 * @returns the valid items, every problem in the order of the items, and the repeats: the items without a `requestId` whose
 * message an earlier item has. Items are numbered from 1 in problems and repeats.
 */
export function checkItems(inputs: readonly unknown[], batchId: string, maxProblems = Infinity) {
  const requestId = `${batchId}-${'x'.repeat(KEY_DIGITS)}`;
  const problems: Problem[] = [];
  const numbers: number[] = [];
  const requests: FollowUpRequest[] = [];
  for (const [index, input] of inputs.entries()) {
    if (problems.length >= maxProblems) break;
    const item = index + 1;
    const request = withBatchPolling(input);
    const checked = checkRequest(
      isRecord(request) ? { ...request, requestId: request.requestId ?? requestId } : request,
    );
    if (checked.ok) {
      numbers.push(item);
      requests.push(request as FollowUpRequest);
    } else problems.push(...checked.problems.map((problem) => ({ ...problem, item })));
  }
  const repeats: { readonly item: number; readonly earlierItem: number }[] = [];
  const toNumber = (index: number) => numbers[index] ?? 0;
  const items = toBatchItems(requests, (index, earlier) =>
    repeats.push({ item: toNumber(index), earlierItem: toNumber(earlier) }),
  );
  const named = items.map((each, index) => {
    const { projectId, jobId } = each.request;
    const name = toItemRequestId(batchId, each);
    return { item: toNumber(index), name, workflowId: followUpWorkflowId(projectId, jobId, name) };
  });
  for (const same of groupsBy(named, ({ workflowId }) => workflowId).filter(({ length }) => length > 1))
    for (const { item, name } of same) {
      const text = `${quote(name)} is the request ID of ${same.length} items for the same job; set a different ID for each item`;
      problems.push({ item, field: 'requestId', text });
    }
  return { items, repeats, problems: problems.sort(byItem) };
}

/** Compares two problems by their items. */
export function byItem(one: Problem, other: Problem): number {
  return (one.item ?? 0) - (other.item ?? 0);
}

/**
 * Returns why a value is not a batch ID, or undefined if the value is valid.
 *
 * @param suffix the text that a schedule appends to the value, which is then the ID of the schedule
 */
export function batchIdProblem(value: unknown, suffix = ''): string | undefined {
  // Together with a hyphen and an item's key, the batch ID must still be a valid `requestId`.
  const problem = nameProblem(value, 100 - suffix.length);
  if (problem !== undefined || typeof value !== 'string') return problem;
  if (value.includes('/'))
    return "must not have a slash, because Temporal's HTTP API does not support a slash in a workflow ID";
  const bytes = utf8ByteLength(chunkWorkflowId(value + suffix, 'x'.repeat(64), MAX_CHUNKS));
  if (bytes <= MAX_WORKFLOW_ID_BYTES) return undefined;
  return `is too long: a workflow ID that contains this ID would have ${bytes} bytes, and the maximum is ${MAX_WORKFLOW_ID_BYTES}`;
}

/** Returns the problems of the two settings of a batch. */
export function settingProblems(concurrency: unknown, maxFailures: unknown): Problem[] {
  const problems: Problem[] = [];
  const report = (field: string, value: unknown, accepted: string) =>
    problems.push({ field, text: `must be ${accepted}; it is ${quote(value)}` });
  const { minimum, maximum } = CONCURRENCY;
  if (!count(concurrency) || concurrency < minimum || concurrency > maximum)
    report('concurrency', concurrency, `a whole number from ${minimum} to ${maximum}`);
  const shapes = '{ "items": N }, { "percent": P } with P from 0 to 100, or null (in the CLI: N or P%)';
  const { items, percent } =
    isRecord(maxFailures) && Object.keys(maxFailures).length === 1 ? maxFailures : {};
  const isShare = typeof percent === 'number' && percent >= 0 && percent <= 100;
  if (maxFailures !== null && !count(items) && !isShare) report('maxFailures', maxFailures, shapes);
  return problems;
}

export function batchStartOptions(batchId: string) {
  return {
    typedSearchAttributes: [keywordAttribute('FollowUpBatch', batchId)],
    priority: BATCH_PRIORITY,
  };
}

export function batchTitle(items: number): string {
  return `Batch of ${pluralize(items, 'follow-up')}`;
}
