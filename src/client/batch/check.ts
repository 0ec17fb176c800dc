import { createHash } from 'node:crypto';
import {
  batchIdProblem,
  type BatchItem,
  checkItems,
  CONCURRENCY,
  MAX_BATCH_ITEMS,
  settingProblems,
  type MaxFailures,
} from '../../batch/items';
import { isRecord, type Problem, typeName } from '../../contract/checks';
import { toBatchId, sha256Hex } from '../../contract/ids';
import { FollowUpError } from '../../contract/follow-up-error';
import type { FollowUpRequest } from '../../contract/request';
import { invalidFieldError, throwIfProblems } from '../errors';
import { unknownOptions } from '../options';

/** The settings of a batch's run. A setting that is not given keeps the batch's earlier value. */
export interface RunOptions {
  /** How many follow-ups of the batch may run at the same time, 1 to 1,000. @default 50 */
  readonly concurrency?: number | undefined;
  /** If more items fail, the batch starts no further item and fails. @default null, any number */
  readonly maxFailures?: MaxFailures | undefined;
}

/** @param others names of further options @throws InvalidRequestError */
export function checkRunOptions(
  options: RunOptions,
  others: readonly string[] = [],
  problems: readonly Problem[] = [],
): void {
  const { concurrency, maxFailures } = options;
  const problemsOfSettings = settingProblems(concurrency ?? CONCURRENCY.default, maxFailures ?? null);
  const unknown = unknownOptions(options, ['concurrency', 'maxFailures', ...others]);
  throwIfProblems([...problems, ...problemsOfSettings, ...unknown]);
}

export interface CheckedBatch {
  /** The given batch ID, or a hash of the items. */
  readonly batchId: string;
  /** In the order of the input. */
  readonly items: readonly BatchItem[];
  /** The SHA-256 of items, options and order, in hexadecimal digits: shows whether an existing batch is the same batch. */
  readonly digest: string;
}

/** The requests of a batch. */
export type BatchItems<Item = FollowUpRequest> = Iterable<Item> | AsyncIterable<Item>;

export function isCheckedBatch(items: unknown): items is CheckedBatch {
  return isRecord(items) && 'digest' in items;
}

const BATCH_ID_DIGITS = 20;

export interface StartBatchOptions extends RunOptions {
  /** 1 to 100 characters, or a batch's workflow ID. @default a hash of the items, so that the same items are the same batch */
  readonly batchId?: string | undefined;
}

/**
 * Checks the options and requests of a batch, before anything is started.
 *
 * @throws InvalidRequestError with every problem of the options, or otherwise of the items, which are numbered from 1;
 *   FollowUpError `UNEXPECTED_FAILURE` with the error that `requests` throws
 */
export async function checkBatch(
  requests: BatchItems<unknown>,
  { batchId: given, ...options }: StartBatchOptions = {},
): Promise<CheckedBatch> {
  const givenBatchId = given && toBatchId(given);
  const text = given === undefined ? undefined : batchIdProblem(givenBatchId);
  checkRunOptions(options, ['batchId'], text === undefined ? [] : [{ field: 'batchId', text }]);
  const isList = isRecord(requests) || Array.isArray(requests);
  if (!isList || !(Symbol.iterator in requests || Symbol.asyncIterator in requests))
    throw invalidFieldError('items', `must be a list or an iterable of requests, not ${typeName(requests)}`);
  const inputs: unknown[] = [];
  // A prompt that all items share takes memory once.
  const prompts = new Map<unknown, unknown>();
  try {
    for await (const input of requests) {
      if (inputs.length > MAX_BATCH_ITEMS) break;
      const { prompt } = isRecord(input) ? input : {};
      if (!prompts.has(prompt)) prompts.set(prompt, prompt);
      inputs.push(isRecord(input) ? { ...input, prompt: prompts.get(prompt) } : input);
    }
  } catch (error) {
    if (error instanceof FollowUpError) throw error;
    const { message } = error instanceof Error ? error : new Error(String(error));
    throw new FollowUpError('UNEXPECTED_FAILURE', `The items can't be read: ${message}`, { cause: error });
  }
  const { items, problems } = checkItems(inputs, givenBatchId ?? 'x'.repeat(BATCH_ID_DIGITS));
  if (inputs.length === 0) problems.push({ field: 'items', text: 'there are no items' });
  const tooMany = `a batch has at most ${MAX_BATCH_ITEMS} items, and there are more; divide it`;
  if (inputs.length > MAX_BATCH_ITEMS) problems.push({ field: 'items', text: tooMany });
  throwIfProblems(problems);
  return { batchId: givenBatchId ?? defaultBatchId(items), items, digest: itemsDigest(items) };
}

/** A hash of the items that depends on neither order nor options: otherwise, a changed option would send every message again. */
function defaultBatchId(items: readonly BatchItem[]): string {
  const identities = items.map(({ key, request: { projectId, jobId, requestId, prompt } }) =>
    JSON.stringify(key ?? [projectId, jobId, requestId, sha256Hex(JSON.stringify(prompt))]),
  );
  return sha256Hex(JSON.stringify(identities.sort())).slice(0, BATCH_ID_DIGITS);
}

export function itemsDigest(items: readonly BatchItem[]): string {
  const hash = createHash('sha256');
  for (const { key, request } of items) hash.update(JSON.stringify([key, request]) + '\n');
  return hash.digest('hex');
}
