import { createHash } from 'node:crypto';
import {
  batchIdProblem,
  type BatchItem,
  byItem,
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
import { booleanProblem, checkOptions, type OptionChecks } from '../options';

/** The settings of one run of a batch. If the batch has earlier runs, an omitted setting keeps its value. */
export interface RunOptions {
  /** The number of items that may run at the same time, 1 to 1,000. @default 50 */
  readonly concurrency?: number | undefined;
  /**
   * The number or percentage of items that may fail. If more fail, the batch starts no further item and fails. @default
   * unlimited
   */
  readonly maxFailures?: MaxFailures | undefined;
}

export const RUN_CHECKS: OptionChecks<RunOptions> = {
  // Null counts as omitted.
  concurrency: (value) => settingProblems(value ?? CONCURRENCY.default, null)[0]?.text,
  maxFailures: (value) => settingProblems(CONCURRENCY.default, value)[0]?.text,
};

export interface CheckedBatch {
  /** The given batch ID; by default, a hash of the items. */
  readonly batchId: string;
  /** The items in the order of the input. */
  readonly items: readonly BatchItem[];
  /**
   * The SHA-256 of the items, their options and their order, in hexadecimal digits. The digest shows whether an existing batch
   * with this ID has the same items.
   */
  readonly digest: string;
}

export interface DuplicateOptions {
  /**
   * Accepts several items with the same project, job and prompt, whose message is then sent several times. Items with
   * different `requestId`s are accepted without this option. @default false
   */
  readonly allowDuplicates?: boolean | undefined;
}

/** The requests of a batch, as an array or another iterable. */
export type BatchItems<Item = FollowUpRequest> = Iterable<Item> | AsyncIterable<Item>;

export function isCheckedBatch(items: unknown): items is CheckedBatch {
  return isRecord(items) && 'digest' in items;
}

const BATCH_ID_DIGITS = 20;

export interface StartBatchOptions extends RunOptions, DuplicateOptions {
  /** The batch ID of 1 to 100 characters, or the workflow ID. @default a hash of the items: the same items are the same batch */
  readonly batchId?: string | undefined;
}

const START_CHECKS: OptionChecks<StartBatchOptions> = {
  ...RUN_CHECKS,
  batchId: (value) => batchIdProblem(typeof value === 'string' ? toBatchId(value) : value),
  allowDuplicates: booleanProblem,
};

/**
 * Checks the options and the requests of a batch before anything is started.
 *
 * @throws InvalidRequestError with every problem of the options. If the options are valid, the error has every problem of the
 *   items, which are numbered from 1.
 * @param remedy the change that makes a repeated item acceptable
 * @throws FollowUpError `UNEXPECTED_FAILURE` if iterating over `requests` throws an error, which is the `cause`
 */
export async function checkBatch(
  requests: BatchItems<unknown>,
  startOptions: StartBatchOptions = {},
  remedy = 'give each of them its own request ID',
): Promise<CheckedBatch> {
  checkOptions(startOptions, START_CHECKS);
  const { batchId: given, allowDuplicates } = startOptions;
  const givenBatchId = given && toBatchId(given);
  const inputs = await readRequests(requests);
  const { items, problems, repeats } = checkItems(inputs, givenBatchId ?? 'x'.repeat(BATCH_ID_DIGITS));
  if (allowDuplicates !== true) {
    for (const repeat of repeats) problems.push(repeatProblem(repeat, remedy));
    problems.sort(byItem);
  }
  if (inputs.length === 0) problems.push({ field: 'items', text: 'must have at least one item' });
  const tooMany = `must have at most ${MAX_BATCH_ITEMS} items; split them into several batches`;
  if (inputs.length > MAX_BATCH_ITEMS) problems.push({ field: 'items', text: tooMany });
  throwIfProblems(problems);
  return { batchId: givenBatchId ?? defaultBatchId(items), items, digest: itemsDigest(items) };
}

/** Creates the problem of an item that repeats the message of an earlier item. */
function repeatProblem(place: Pick<Problem, 'item' | 'earlierItem'>, remedy: string): Problem {
  const text =
    'both have the same project, job and prompt, so the agent would receive the message twice; remove one of them, ' +
    `${remedy}, or set allowDuplicates (in the CLI: --allow-duplicates)`;
  return { ...place, field: 'prompt', text };
}

/** Reads the requests, at most one more than a batch may have. */
async function readRequests(requests: BatchItems<unknown>): Promise<unknown[]> {
  const isList = isRecord(requests) || Array.isArray(requests);
  if (!isList || !(Symbol.iterator in requests || Symbol.asyncIterator in requests))
    throw invalidFieldError(
      'items',
      `must be an array or an iterable of requests, not ${typeName(requests)}`,
    );
  const inputs: unknown[] = [];
  // Items with the same prompt share one string, so that a common prompt is in memory only once.
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
    throw new FollowUpError(
      'UNEXPECTED_FAILURE',
      `The items can't be read. The iterable threw an error: ${message}`,
      { cause: error },
    );
  }
  return inputs;
}

/**
 * Returns a hash of the items. The hash depends on neither order nor options, because a changed option would otherwise make a new
 * batch that sends every message again.
 */
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
