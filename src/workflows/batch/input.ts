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
import { type BatchInput, type BatchMemo, isBegun, isPosition } from '../../core/batch/state';
import { type BatchFailureType, type BatchSummary } from '../../core/batch/progress';
import {
  type Check,
  count,
  fields,
  isRecord,
  listOf,
  oneOf,
  orNull,
  problemText,
  text,
  typeName,
} from '../../core/checks';
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

const isChunks = fields({ items: between(1, MAX_BATCH_ITEMS), firsts: listOf(count) });
const isTryAgain = orNull(oneOf(...TRY_AGAIN));

function between(least: number, most: number): Check<number> {
  return (value): value is number => count(value) && value >= least && value <= most;
}

/** Of a {@link BatchInput}. */
const INPUT: Readonly<Record<keyof BatchInput, true>> = {
  ...{ batchId: true, concurrency: true, tolerate: true, items: true },
  ...{ chunks: true, digest: true, begun: true, again: true },
};

/** A schedule has the batch id in its workflow ids as it is. */
function isNameOf(batchId: string, workflowId: string): boolean {
  return workflowId === batchWorkflowId(batchId) || workflowId === `follow-up-batch:${batchId}`;
}

function areInOrder(firsts: readonly number[], items: number): boolean {
  const isNext = (first: number, index: number) => first > (firsts[index - 1] ?? -1) && first < items;
  return firsts[0] === 0 && firsts.length <= MAX_CHUNKS && firsts.every(isNext);
}

/**
 * The input may come from any client: an invalid one would stall the batch later.
 *
 * @throws ApplicationFailure `InvalidBatch` with every problem
 */
export function checkBatch(input: unknown, workflowId: string): BatchPlan {
  if (!isRecord(input)) throw invalid(`input: must be one JSON object, a BatchInput, not ${typeName(input)}`);
  const { items, chunks } = { items: input.items ?? undefined, chunks: input.chunks ?? undefined };
  const plan = {
    batchId: input.batchId ?? batchIdOf(workflowId),
    concurrency: input.concurrency ?? CONCURRENCY.default,
    tolerate: input.tolerate ?? null,
    digest: input.digest ?? null,
    begun: input.begun ?? null,
    again: input.again ?? null,
  };
  const badId = batchIdProblem(plan.batchId);
  const problems = [
    badId !== undefined && `batchId: ${badId}`,
    badId === undefined &&
      !isNameOf(plan.batchId as string, workflowId) &&
      `batchId: ${quote(plan.batchId)} belongs to the workflow id ${batchWorkflowId(plan.batchId as string)}, not to this one`,
    ...Object.keys(input).flatMap((name) =>
      name in INPUT
        ? []
        : [`${quote(name)} is not a field here; the fields are ${Object.keys(INPUT).join(', ')}`],
    ),
    ...settingProblems(plan.concurrency, plan.tolerate).map((problem) => problemText(problem)),
    !orNull(text)(plan.digest) && 'digest: must be a text, or null',
    !orNull(isBegun)(plan.begun) && 'begun: must be what the memo of the run before says, or null',
    !isTryAgain(plan.again) && `again: must be one of ${TRY_AGAIN.join(', ')}, or null`,
    (items === undefined) === (chunks === undefined) &&
      'items: must be given, or chunks in their place, and not both',
    chunks !== undefined &&
      (!isChunks(chunks) || !areInOrder(chunks.firsts, chunks.items)) &&
      'chunks: must be { "items", "firsts" }, as the client makes it',
  ].filter((problem) => problem !== false);
  if (items !== undefined) {
    if (!Array.isArray(items) || !between(1, MAX_BATCH_ITEMS)(items.length))
      problems.push(`items: must be a list of 1 to ${MAX_BATCH_ITEMS} requests`);
    else if (jsonBytes(items) > MAX_INPUT_BYTES)
      problems.push(`items: must have at most ${MAX_INPUT_BYTES} bytes as JSON`);
    else if (badId === undefined) problems.push(...itemProblems(items, plan.batchId as string));
  }
  if (problems.length > 0) throw invalid(...problems);
  return { ...plan, ...(items === undefined ? { chunks } : { items }) } as BatchPlan;
}

/** Problems of items that are named, and characters of one, which may quote the input. */
const MAX_PROBLEMS = 20;
const MAX_PROBLEM_CHARACTERS = 300;

function itemProblems(requests: readonly unknown[], batchId: string): string[] {
  const checks = new ItemChecks();
  for (const request of requests) checks.add(request);
  const problems = checks.problems(batchId);
  const shown = problems
    .slice(0, MAX_PROBLEMS)
    .map((each) => truncate(problemText(each), MAX_PROBLEM_CHARACTERS));
  const more = problems.length - shown.length;
  return more > 0 ? [...shown, `… and ${more} more`] : shown;
}

function invalid(...problems: readonly string[]) {
  return batchFailure('InvalidBatch', `Invalid batch: ${problems.join('; ')}. Nothing was sent.`);
}

export function batchFailure(type: BatchFailureType, message: string, ...details: readonly BatchSummary[]) {
  return ApplicationFailure.nonRetryable(message, type, ...details);
}
