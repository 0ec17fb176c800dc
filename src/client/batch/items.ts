import { createHash } from 'node:crypto';
import {
  BATCH_POLLING_INITIAL,
  batchIdProblem,
  type BatchItem,
  MAX_BATCH_ITEMS,
  requestIdOf,
} from '../../core/batch/batch';
import { checkRequest } from '../../core/check-request';
import { batchIdOf, digestOf, followUpWorkflowId } from '../../core/ids';
import { isRecord, type JsonObject, type Problem, typeName } from '../../core/checks';
import { fieldOf, type FollowUpRequest, REQUEST_FIELDS, requestWith } from '../../core/request';
import { MAX_WORKFLOW_ID_BYTES, quote } from '../../core/text';
import { parseDuration } from '../../core/units';
import { InvalidRequestError } from '../errors';
import { checkRunOptions } from '../run-options';
import type { BatchOptions } from './start-batch';

/** A batch whose every item was checked; nothing of it is started yet. */
export interface CheckedBatch {
  /** As given, or a hash of the items. */
  readonly batchId: string;
  /** In the order of the input. */
  readonly items: readonly BatchItem[];
  /** The SHA-256 of items, options and order, in hexadecimal digits: whether an existing batch is this very one. */
  readonly digest: string;
}

/**
 * Hexadecimal digits of an item's key: 64 bits, by which two of 100,000 items meet with a probability of 3 in
 * 10,000,000,000. A collision is refused nevertheless.
 */
const KEY_DIGITS = 16;

const BATCH_ID_DIGITS = 20;

/** A name for the checker: the item's own is made when the batch has its id. */
const NO_NAME_YET = 'follow-up-of-a-batch';

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
  checkRunOptions(options, ['batchId', 'onPage'], text === undefined ? [] : [{ field: 'batchId', text }]);
  if (!isIterable(requests)) {
    const notList = `must be a list or an iterable of requests, not ${typeName(requests)}`;
    throw new InvalidRequestError([{ field: 'items', text: notList }]);
  }
  const problems: Problem[] = [];
  const items = new Map<number, BatchItem>();
  /** Most batches send the same message to many jobs; it is held once. */
  const prompts = new Map<string, string>();
  const occurrences = new Map<string, number>();
  let number = 0;
  for await (const input of requests) {
    number += 1;
    if (number > MAX_BATCH_ITEMS) break;
    const request = withBatchCadence(input);
    const checked = checkRequest(request, hasRequestId(input) ? undefined : NO_NAME_YET);
    if (!checked.ok) {
      if (problems.length < MAX_BATCH_ITEMS)
        problems.push(...checked.problems.map((problem) => ({ ...problem, item: number })));
      continue;
    }
    const { projectId, jobId, prompt } = checked.plan;
    const digest = digestOf(prompt);
    prompts.set(digest, prompts.get(digest) ?? prompt);
    let key = null;
    if (!hasRequestId(input)) {
      const message = [projectId, jobId, digest].join('\0');
      const occurrence = (occurrences.get(message) ?? 0) + 1;
      occurrences.set(message, occurrence);
      // Without line numbers and options: a file that was sorted anew, or a changed option, sends nothing twice.
      key = digestOf(JSON.stringify([projectId, jobId, digest, occurrence])).slice(0, KEY_DIGITS);
    }
    const tidy = tidyRequest(request as JsonObject, prompts.get(digest) ?? prompt);
    items.set(number, { key, request: tidy });
  }
  const batch = [...items.values()];
  const batchId = named ?? defaultBatchId(batch);
  problems.push(...nameProblems(items, batchId));
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
function nameProblems(items: ReadonlyMap<number, BatchItem>, batchId: string): Problem[] {
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

function hasRequestId(input: unknown): boolean {
  return isRecord(input) && (input.requestId ?? undefined) !== undefined;
}

/** A hash of the items, in any order and with any options: an id that changed with them would send every message again. */
function defaultBatchId(items: readonly BatchItem[]): string {
  const identities = items.map(({ key, request: { projectId, jobId, requestId, prompt } }) =>
    JSON.stringify(key ?? [projectId, jobId, requestId, digestOf(JSON.stringify(prompt))]),
  );
  return digestOf(JSON.stringify(identities.sort())).slice(0, BATCH_ID_DIGITS);
}

/** The SHA-256 of everything that a batch's pages are made of: items, options and order. */
export function itemsDigest(items: readonly BatchItem[]): string {
  const hash = createHash('sha256');
  for (const { key, request } of items) {
    // Another client's request may have its fields in another order.
    hash.update(JSON.stringify([key, tidyRequest({ ...request }, request.prompt)]) + '\n');
  }
  return hash.digest('hex');
}

/**
 * A request with the cadence of batches: polling begins at `BATCH_POLLING_INITIAL`, or at the caller's own maximum where
 * that is shorter. Anything else than a request stays as it is, for the checker to refuse.
 */
function withBatchCadence(input: unknown): unknown {
  if (!isRecord(input)) return input;
  const polling = input.polling ?? {};
  if (!isRecord(polling) || (polling.initial ?? undefined) !== undefined) return input;
  const usual = parseDuration(BATCH_POLLING_INITIAL);
  const longest = parseDuration(polling.maximum);
  const isShorter = 'ms' in longest && 'ms' in usual && longest.ms < usual.ms;
  return { ...input, polling: { ...polling, initial: isShorter ? polling.maximum : BATCH_POLLING_INITIAL } };
}

/** A copy of a checked request, without nulls and its fields always in the same order: equal requests are equal JSON. */
function tidyRequest(checked: JsonObject, prompt: string): FollowUpRequest {
  const fields = Object.keys(REQUEST_FIELDS).map((field) => [field, fieldOf(checked, field)] as const);
  // The checker has seen every field, and refuses others.
  return { ...requestWith(fields), prompt } as unknown as FollowUpRequest;
}
