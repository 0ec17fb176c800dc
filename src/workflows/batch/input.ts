import { ApplicationFailure } from '@temporalio/workflow';
import {
  batchIdProblem,
  CONCURRENCY,
  ItemChecks,
  MAX_BATCH_ITEMS,
  MAX_CHUNKS,
  MAX_INPUT_BYTES,
  settingProblems,
} from '../../core/batch/items';
import { type BatchFailureType, type BatchSummary } from '../../core/batch/progress';
import { type BatchInput, type BatchMemo, type Chunks, isBegun, isPosition } from '../../core/batch/state';
import { count, fields, isRecord, listOf, oneOf, problemText, text, typeName } from '../../core/checks';
import { TRY_AGAIN } from '../../core/end';
import { batchIdOf, batchWorkflowId } from '../../core/ids';
import { jsonBytes, quote, truncate } from '../../core/text';

/** What a run that continues as new hands to the next one. */
export interface ContinuedBatch extends Pick<BatchInput, 'items' | 'chunks'> {
  readonly continued: BatchMemo;
  readonly rounds: number;
}

export function isContinued(input: unknown): input is ContinuedBatch {
  return isRecord(input) && isRecord(input.continued) && isPosition(input.continued);
}

/** A checked input with its defaults filled in. */
export type BatchPlan = Required<Omit<BatchInput, 'items' | 'chunks'>> & Pick<BatchInput, 'items' | 'chunks'>;

const DEFAULTS = {
  concurrency: CONCURRENCY.default,
  tolerate: null,
  digest: null,
  begun: null,
  again: null,
};

const FIELDS = ['batchId', 'items', 'chunks', ...Object.keys(DEFAULTS)];

const isListOfChunks = fields({ items: count, firsts: listOf(count) });

function isChunks(value: unknown): value is Chunks {
  if (!isListOfChunks(value)) return false;
  const { items, firsts } = value;
  const isNext = (first: number, index: number) => first > (firsts[index - 1] ?? -1) && first < items;
  return items <= MAX_BATCH_ITEMS && firsts[0] === 0 && firsts.length <= MAX_CHUNKS && firsts.every(isNext);
}

/** What only our client gives. */
const OF_CLIENT = { chunks: isChunks, digest: text, begun: isBegun, again: oneOf(...TRY_AGAIN) };

/**
 * The input may come from any client: an invalid one would stall the batch later.
 *
 * @throws ApplicationFailure `InvalidBatch` with every problem
 */
export function checkBatch(input: unknown, workflowId: string): BatchPlan {
  if (!isRecord(input))
    throw invalid([`input: must be one JSON object, a BatchInput, not ${typeName(input)}`]);
  const given = Object.fromEntries(Object.entries(input).filter(([, value]) => (value ?? null) !== null));
  const plan = { batchId: batchIdOf(workflowId), ...DEFAULTS, ...given } as BatchPlan;
  const { batchId, items, concurrency, tolerate } = plan;
  const otherId = `${quote(batchId)} is not the one of the workflow id ${quote(workflowId)}`;
  const badId = batchIdProblem(batchId) ?? (batchWorkflowId(batchId) === workflowId ? undefined : otherId);
  const problems = badId === undefined ? [] : [`batchId: ${badId}`];
  for (const name of Object.keys(input).filter((each) => !FIELDS.includes(each)))
    problems.push(`${quote(name)} is not a field here; the fields are ${FIELDS.join(', ')}`);
  problems.push(...settingProblems(concurrency, tolerate).map((problem) => problemText(problem)));
  for (const [name, isRight] of Object.entries(OF_CLIENT))
    if (name in given && !isRight(given[name])) problems.push(`${name}: must be as the client makes it`);
  if ('items' in given === 'chunks' in given)
    problems.push('items: must be given, or chunks in their place, and not both');
  else if (
    'items' in given &&
    (!Array.isArray(items) || items.length === 0 || items.length > MAX_BATCH_ITEMS)
  )
    problems.push(`items: must be a list of 1 to ${MAX_BATCH_ITEMS} requests`);
  else if (items && jsonBytes(items) > MAX_INPUT_BYTES)
    problems.push(`items: must have at most ${MAX_INPUT_BYTES} bytes as JSON`);
  else if (items && badId === undefined) problems.push(...itemProblems(items, batchId));
  if (problems.length > 0) throw invalid(problems);
  return plan;
}

/** Problems of items that are named, and characters of one, which may quote the input. */
const MAX_PROBLEMS = 20;
const MAX_PROBLEM_CHARACTERS = 300;

function itemProblems(requests: readonly unknown[], batchId: string): string[] {
  const checks = new ItemChecks(batchId);
  for (const request of requests) checks.add(request);
  const all = checks.problems(batchId).map((each) => truncate(problemText(each), MAX_PROBLEM_CHARACTERS));
  const more = all.length - MAX_PROBLEMS;
  return more > 0 ? [...all.slice(0, MAX_PROBLEMS), `… and ${more} more`] : all;
}

function invalid(problems: readonly string[]) {
  return batchFailure('InvalidBatch', `Invalid batch: ${problems.join('; ')}. Nothing was sent.`);
}

export function batchFailure(type: BatchFailureType, message: string, ...details: readonly BatchSummary[]) {
  return ApplicationFailure.nonRetryable(message, type, ...details);
}
