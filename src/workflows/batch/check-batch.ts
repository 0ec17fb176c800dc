import {
  batchIdProblem,
  CONCURRENCY,
  itemProblems,
  MAX_BATCH_ITEMS,
  MAX_PAGES,
  settingProblems,
  TRY_AGAIN,
} from '../../core/batch/batch';
import type { BatchInput, PageInput } from '../../core/batch/workflows';
import {
  type Check,
  count,
  fields,
  isRecord,
  listOf,
  oneOf,
  optional,
  orNull,
  problemText,
  text,
  typeName,
} from '../../core/checks';
import { batchFailure } from './state';

/** A checked input with its defaults filled in. */
export type BatchPlan = Required<Omit<BatchInput, 'items' | 'handedOver'>> &
  Pick<BatchInput, 'items' | 'handedOver'>;

const isPageNumber = between(1, MAX_PAGES);
const isRange: Check<unknown> = (value): value is unknown =>
  Array.isArray(value) && value.length === 2 && value.every(isPageNumber);
const isEarlier = listOf(fields({ run: text, pages: listOf(isRange) }));
const isHandOver = fields({ items: between(1, MAX_BATCH_ITEMS), pages: isPageNumber });
const isTryAgain = orNull(oneOf(...TRY_AGAIN));
const isPageInput = fields({
  batchWorkflowId: text,
  run: text,
  earlier: optional(orNull(text)),
  again: optional(isTryAgain),
  page: fields({ number: isPageNumber, after: orNull(isPageNumber) }),
});

function between(least: number, most: number): Check<number> {
  return (value): value is number => count(value) && value >= least && value <= most;
}

/**
 * The input may come from any client: an invalid one would stall the batch later.
 *
 * @param fallbackId the batch id if the input has none
 * @throws ApplicationFailure `InvalidBatch` with every problem
 */
export function checkBatch(input: unknown, fallbackId: string): BatchPlan {
  if (!isRecord(input)) throw invalid(`input: must be one JSON object, a BatchInput, not ${typeName(input)}`);
  const { items, handedOver } = input;
  const plan = {
    batchId: input.batchId ?? fallbackId,
    concurrency: input.concurrency ?? CONCURRENCY.default,
    tolerate: input.tolerate ?? null,
    items,
    handedOver,
    earlier: input.earlier ?? [],
    again: input.again ?? null,
  };
  const badId = batchIdProblem(plan.batchId);
  const problems = [
    badId !== undefined && `batchId: ${badId}`,
    ...settingProblems(plan.concurrency, plan.tolerate).map((problem) => problemText(problem)),
    !isEarlier(plan.earlier) && 'earlier: must be a list of { "run", "pages": [[from, to], …] }',
    !isTryAgain(plan.again) && `again: must be one of ${TRY_AGAIN.join(', ')}, or null`,
    (items === undefined) === (handedOver === undefined) &&
      'items: must be given, or handedOver in its place, and not both',
    handedOver !== undefined &&
      !isHandOver(handedOver) &&
      `handedOver: must be { "items": N, "pages": P }, whole numbers from 1; at most ${MAX_PAGES} pages`,
  ].filter((problem) => problem !== false);
  if (items !== undefined) {
    if (!Array.isArray(items) || !between(1, MAX_BATCH_ITEMS)(items.length))
      problems.push(`items: must be 1 to ${MAX_BATCH_ITEMS} items`);
    else if (badId === undefined) problems.push(...itemProblems(items, plan.batchId as string));
  }
  if (problems.length > 0) throw invalid(...problems);
  return plan as BatchPlan;
}

/** @throws ApplicationFailure `InvalidBatch` */
export function checkPage(input: unknown): asserts input is PageInput {
  const { batchId, page } = isRecord(input) ? input : {};
  const { items } = isRecord(page) ? page : {};
  if (!isPageInput(input) || batchIdProblem(batchId) !== undefined || !Array.isArray(items))
    throw invalid('input: must be a PageInput, as the client and the batch make it');
  const problems = itemProblems(items, batchId as string);
  if (problems.length > 0) throw invalid(...problems);
}

function invalid(...problems: readonly string[]) {
  return batchFailure('InvalidBatch', `Invalid batch: ${problems.join('; ')}. Nothing was sent.`);
}
