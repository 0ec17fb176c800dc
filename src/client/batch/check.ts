import { createHash } from 'node:crypto';
import {
  batchIdProblem,
  type BatchItem,
  CONCURRENCY,
  Keys,
  MAX_BATCH_ITEMS,
  requestIdOf,
  settingProblems,
  type Tolerance,
  withBatchCadence,
} from '../../core/batch/items';
import { checkRequest } from '../../core/check-request';
import { isRecord, type JsonObject, type Problem, typeName } from '../../core/checks';
import { batchIdOf, digestOf, followUpWorkflowId } from '../../core/ids';
import { fieldOf, type FollowUpRequest, REQUEST_FIELDS, requestWith } from '../../core/request';
import { MAX_WORKFLOW_ID_BYTES, quote } from '../../core/text';
import { InvalidRequestError } from '../errors';
import { unknownOptions } from '../options';

/** How a batch runs. */
export interface RunOptions {
  /** How many follow-ups of a batch are open at a time, 1 to 1,000. @default what the batch had before; 50 for a new one */
  readonly concurrency?: number | undefined;
  /**
   * With more failures than this a batch starts no further item and fails. Null tolerates any number.
   *
   * @default what the batch had before; null for a new one
   */
  readonly tolerate?: Tolerance | undefined;
}

/**
 * Checks options before anything is started; callers without TypeScript give anything.
 *
 * @param others names of options beside those of {@link RunOptions}
 * @param problems that were found before
 * @throws InvalidRequestError with every problem
 */
export function checkRunOptions(
  options: RunOptions,
  others: readonly string[],
  problems: Problem[] = [],
): void {
  const { concurrency, tolerate } = options;
  problems.push(...settingProblems(concurrency ?? CONCURRENCY.default, tolerate ?? null));
  problems.push(...unknownOptions(options, ['concurrency', 'tolerate', ...others]));
  if (problems.length > 0) throw new InvalidRequestError(problems);
}

/** A batch whose every item was checked; nothing of it is started yet. */
export interface CheckedBatch {
  /** As given, or a hash of the items. */
  readonly batchId: string;
  /** In the order of the input. */
  readonly items: readonly BatchItem[];
  /** The SHA-256 of items, options and order, in hexadecimal digits: whether an existing batch is this very one. */
  readonly digest: string;
}

const BATCH_ID_DIGITS = 20;

/** A name for the checker: the item's own is made when the batch has its id. */
const NO_NAME_YET = 'follow-up-of-a-batch';

export interface BatchOptions extends RunOptions {
  /** Called after each part of the items that the server has stored; a small batch has none. */
  readonly onStored?: ((stored: number, parts: number) => void) | undefined;
}

export interface NewBatchOptions extends BatchOptions {
  /** 1 to 100 characters, or a batch's workflow id. @default a hash of the items, so that the same items are the same batch */
  readonly batchId?: string | undefined;
}

export function isChecked(items: unknown): items is CheckedBatch {
  return isRecord(items) && 'digest' in items;
}

/**
 * Checks options and requests of a batch, before anything is started.
 *
 * @throws InvalidRequestError with every problem of the options, or else of the items, which count from 1
 */
export async function checkBatch(
  requests: Iterable<unknown> | AsyncIterable<unknown>,
  { batchId: given, ...options }: NewBatchOptions = {},
): Promise<CheckedBatch> {
  const named = given === undefined ? undefined : batchIdOf(given);
  const text = named === undefined ? undefined : batchIdProblem(named);
  checkRunOptions(options, ['batchId', 'onStored'], text === undefined ? [] : [{ field: 'batchId', text }]);
  if (!isIterable(requests)) {
    const notList = `must be a list or an iterable of requests, not ${typeName(requests)}`;
    throw new InvalidRequestError([{ field: 'items', text: notList }]);
  }
  const problems: Problem[] = [];
  const items = new Map<number, BatchItem>();
  /** Most batches send the same message to many jobs; it is held once. */
  const prompts = new Map<string, string>();
  const keys = new Keys();
  let number = 0;
  for await (const input of requests) {
    number += 1;
    if (number > MAX_BATCH_ITEMS) break;
    const request = withBatchCadence(input);
    const isNamed = isRecord(input) && (input.requestId ?? undefined) !== undefined;
    const checked = checkRequest(request, isNamed ? undefined : NO_NAME_YET);
    if (!checked.ok) {
      problems.push(...checked.problems.map((problem) => ({ ...problem, item: number })));
      continue;
    }
    const { prompt } = checked.plan;
    prompts.set(prompt, prompts.get(prompt) ?? prompt);
    items.set(number, keys.itemOf(tidyRequest(request as JsonObject, prompts.get(prompt) ?? prompt)));
  }
  const batch = [...items.values()];
  const batchId = named ?? defaultBatchId(batch);
  problems.push(...namesProblems(items, batchId));
  problems.sort((one, other) => (one.item ?? 0) - (other.item ?? 0));
  if (number === 0) problems.push({ field: 'items', text: 'there are no items' });
  if (number > MAX_BATCH_ITEMS) {
    const tooMany = `a batch has at most ${MAX_BATCH_ITEMS} items, and there are more; divide it`;
    problems.push({ field: 'items', text: tooMany });
  }
  if (problems.length > 0) throw new InvalidRequestError(problems);
  return { batchId, items: batch, digest: itemsDigest(batch) };
}

function isIterable(value: unknown): boolean {
  return (
    Array.isArray(value) || (isRecord(value) && (Symbol.iterator in value || Symbol.asyncIterator in value))
  );
}

/** Each item needs a name that no other has, its own or the one that the batch makes, and that fits into a workflow id. */
function namesProblems(items: ReadonlyMap<number, BatchItem>, batchId: string): Problem[] {
  const problems: Problem[] = [];
  const field = 'requestId';
  const users = new Map<string, { name: string; items: number[] }>();
  for (const [item, { key, request }] of items) {
    const name = requestIdOf(batchId, { key, request });
    const workflowId = followUpWorkflowId(request.projectId, request.jobId, name);
    const others = users.get(workflowId);
    if (others === undefined) users.set(workflowId, { name, items: [item] });
    else others.items.push(item);
    if (workflowId.length <= MAX_WORKFLOW_ID_BYTES) continue;
    const text =
      `is missing, and with the one that the batch would make (${name.length} characters) the workflow id would be ` +
      `${workflowId.length} bytes long; at most ${MAX_WORKFLOW_ID_BYTES} are possible, so give a shorter one`;
    problems.push({ item, field, text });
  }
  for (const { name, items: same } of users.values()) {
    if (same.length === 1) continue;
    const text = `${quote(name)} is the name of ${same.length} items for the same job; give each its own`;
    problems.push(...same.map((item) => ({ item, field, text })));
  }
  return problems;
}

/** A hash of the items, in any order and with any options: an id that changed with them would send every message again. */
function defaultBatchId(items: readonly BatchItem[]): string {
  const identities = items.map(({ key, request: { projectId, jobId, requestId, prompt } }) =>
    JSON.stringify(key ?? [projectId, jobId, requestId, digestOf(JSON.stringify(prompt))]),
  );
  return digestOf(JSON.stringify(identities.sort())).slice(0, BATCH_ID_DIGITS);
}

/** The SHA-256 of everything that a batch is made of: items, options and order. */
export function itemsDigest(items: readonly BatchItem[]): string {
  const hash = createHash('sha256');
  for (const { key, request } of items) {
    // Another client's request may have its fields in another order, and leaves the cadence to the batch.
    const tidy = tidyRequest(withBatchCadence(request) as JsonObject, request.prompt);
    hash.update(JSON.stringify([key, tidy]) + '\n');
  }
  return hash.digest('hex');
}

/** A copy of a checked request, without nulls and its fields always in the same order: equal requests are equal JSON. */
function tidyRequest(checked: JsonObject, prompt: string): FollowUpRequest {
  const fields = Object.keys(REQUEST_FIELDS).map((field) => [field, fieldOf(checked, field)] as const);
  // The checker has seen every field, and refuses others.
  return { ...requestWith(fields), prompt } as unknown as FollowUpRequest;
}
