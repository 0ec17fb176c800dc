import { ApplicationFailure } from '@temporalio/workflow';
import {
  batchIdProblem,
  checkItems,
  CONCURRENCY,
  MAX_BATCH_ITEMS,
  MAX_INPUT_BYTES,
  settingProblems,
} from '../../core/batch/items';
import { type BatchFailureType, type BatchSummary } from '../../core/batch/progress';
import { type BatchInput, type BatchMemo, isBegun, isChunks, isPosition } from '../../core/batch/state';
import { isRecord, oneOf, problemText, text, typeName } from '../../core/checks';
import { TRY_AGAIN } from '../../core/end';
import { batchIdOf, batchWorkflowId } from '../../core/ids';
import { jsonBytes, quote, truncate } from '../../core/text';

/** What a run that continues as new hands to the next one. */
export interface ContinuedBatch extends Pick<BatchInput, 'items' | 'chunks'> {
  readonly continued: BatchMemo;
}

export function isContinued(input: unknown): input is ContinuedBatch {
  return isRecord(input) && isRecord(input.continued) && isPosition(input.continued);
}

/** A checked input with its defaults filled in. */
export type BatchPlan = Required<Omit<BatchInput, 'items' | 'chunks'>> & Pick<BatchInput, 'items' | 'chunks'>;

const DEFAULTS = { concurrency: CONCURRENCY.default, tolerate: null, digest: null, begun: null, again: null };

const FIELDS = ['batchId', 'items', 'chunks', ...Object.keys(DEFAULTS)];

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
  else if ('items' in given) problems.push(...itemProblems(items, badId === undefined ? batchId : 'b'));
  if (problems.length > 0) throw invalid(problems);
  return plan;
}

/** Problems of items that are named, and characters of one, which may quote the input. */
const MAX_PROBLEMS = 20;
const MAX_PROBLEM_CHARACTERS = 300;

function itemProblems(items: unknown, batchId: string): string[] {
  if (!Array.isArray(items) || items.length === 0 || items.length > MAX_BATCH_ITEMS)
    return [`items: must be a list of 1 to ${MAX_BATCH_ITEMS} requests`];
  if (jsonBytes(items) > MAX_INPUT_BYTES)
    return [`items: must have at most ${MAX_INPUT_BYTES} bytes as JSON`];
  const { problems } = checkItems(items, batchId);
  const all = problems.map((each) => truncate(problemText(each), MAX_PROBLEM_CHARACTERS));
  const more = all.length - MAX_PROBLEMS;
  return more > 0 ? [...all.slice(0, MAX_PROBLEMS), `… and ${more} more`] : all;
}

function invalid(problems: readonly string[]) {
  return batchFailure('InvalidBatch', `Invalid batch: ${problems.join('; ')}. Nothing was sent.`);
}

export function batchFailure(type: BatchFailureType, message: string, ...details: readonly BatchSummary[]) {
  return ApplicationFailure.nonRetryable(message, type, ...details);
}
