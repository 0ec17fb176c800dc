import {
  CONCURRENCY,
  itemProblems,
  MAX_BATCH_ITEMS,
  MAX_PAGES,
  batchIdProblem,
  isTolerance,
  type Tolerance,
  TRY_AGAIN,
  type TryAgain,
} from '../../core/batch';
import { type BatchInput, type BegunPages, type PageRanges } from '../../core/batch-workflows';
import { isRecord, typeName } from '../../core/json';

/** A checked input with its defaults filled in. */
export interface BatchPlan {
  readonly batchId: string;
  readonly concurrency: number;
  readonly tolerate: Tolerance;
  readonly items: BatchInput['items'];
  readonly handedOver: BatchInput['handedOver'];
  readonly earlier: readonly BegunPages[];
  readonly again: TryAgain | null;
}

/**
 * Checks the input of `followUpBatch`, which may come from any client: an invalid input would stall the batch later.
 *
 * @param fallbackId the batch id where the input names none
 * @returns the plan, or every problem at once
 */
export function checkBatch(
  input: unknown,
  fallbackId: string,
): { readonly plan: BatchPlan } | { readonly problems: readonly string[] } {
  if (!isRecord(input))
    return { problems: [`input: must be one JSON object, a BatchInput, not ${typeName(input)}`] };
  const problems: string[] = [];
  const batchId = input.batchId ?? fallbackId;
  const badId = batchIdProblem(batchId);
  if (badId !== undefined) problems.push(`batchId: ${badId}`);
  const concurrency = input.concurrency ?? CONCURRENCY.default;
  const badConcurrency = concurrencyProblem(concurrency);
  if (badConcurrency !== undefined) problems.push(badConcurrency);
  const tolerate = input.tolerate ?? null;
  if (!isTolerance(tolerate)) {
    problems.push('tolerate: must be { "items": N } or { "percent": P }, P from 0 to 100, or null');
  }
  const { items, handedOver } = input;
  const earlier = input.earlier ?? [];
  if (!Array.isArray(earlier) || !earlier.every(isBegunPages)) {
    problems.push('earlier: must be a list of { "run", "pages": [[from, to], …] }');
  }
  const again = input.again ?? null;
  if (!isTryAgain(again)) problems.push(AGAIN);
  if ((items === undefined) === (handedOver === undefined)) {
    problems.push('items: must be given, or handedOver in its place, and not both');
  }
  if (
    items !== undefined &&
    (!Array.isArray(items) || items.length === 0 || items.length > MAX_BATCH_ITEMS)
  ) {
    problems.push(`items: must be 1 to ${MAX_BATCH_ITEMS} items`);
  } else if (Array.isArray(items) && typeof batchId === 'string' && badId === undefined) {
    problems.push(...itemProblems(items, batchId));
  }
  if (handedOver !== undefined && !isHandOver(handedOver)) {
    problems.push(
      `handedOver: must be { "items": N, "pages": P }, both whole numbers from 1; at most ${MAX_PAGES} pages`,
    );
  }
  if (problems.length > 0) return { problems };
  return { plan: { batchId, concurrency, tolerate, items, handedOver, earlier, again } as BatchPlan };
}

/** The problems of the input of `followUpBatchPage`, which may come from any client; empty if it is valid. */
export function pageProblems(input: unknown): string[] {
  if (!isRecord(input)) return [`input: must be one JSON object, a PageInput, not ${typeName(input)}`];
  const { batchWorkflowId, batchId, run, page, earlier, again } = input;
  const problems: string[] = [];
  const badId = batchIdProblem(batchId);
  if (badId !== undefined) problems.push(`batchId: ${badId}`);
  for (const [name, text] of Object.entries({ batchWorkflowId, run })) {
    if (!isText(text)) problems.push(`${name}: must be a text`);
  }
  if ((earlier ?? null) !== null && !isText(earlier))
    problems.push('earlier: must be a workflow id, or null');
  if (!isTryAgain(again ?? null)) problems.push(AGAIN);
  if (!isRecord(page)) return [...problems, `page: must be a BatchPage, not ${typeName(page)}`];
  const { number, after, followedBy, items } = page;
  if (!isBetween(number, 1, MAX_PAGES))
    problems.push(`page.number: must be a whole number from 1 to ${MAX_PAGES}`);
  if (after !== null && !isBetween(after, 1, MAX_PAGES))
    problems.push('page.after: must be the number of a page, or null');
  if (typeof followedBy !== 'boolean') problems.push('page.followedBy: must be true or false');
  if (!Array.isArray(items)) return [...problems, `page.items: must be a list, not ${typeName(items)}`];
  return badId === undefined ? [...problems, ...itemProblems(items, batchId as string)] : problems;
}

/** Why a value is not a valid concurrency; undefined if it is. */
export function concurrencyProblem(value: unknown): string | undefined {
  const { minimum, maximum } = CONCURRENCY;
  if (isBetween(value, minimum, maximum)) return undefined;
  return `concurrency: must be a whole number from ${minimum} to ${maximum}`;
}

const AGAIN = `again: must be one of ${TRY_AGAIN.join(', ')}, or null`;

function isTryAgain(value: unknown): value is TryAgain | null {
  return value === null || TRY_AGAIN.some((each) => each === value);
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && value.isWellFormed();
}

function isHandOver(value: unknown): boolean {
  if (!isRecord(value)) return false;
  return isBetween(value.items, 1, MAX_BATCH_ITEMS) && isBetween(value.pages, 1, MAX_PAGES);
}

function isBegunPages(value: unknown): value is BegunPages {
  return (
    isRecord(value) && typeof value.run === 'string' && value.run.isWellFormed() && isRanges(value.pages)
  );
}

function isRanges(value: unknown): value is PageRanges {
  return (
    Array.isArray(value) &&
    value.every(
      (range: unknown) =>
        Array.isArray(range) && range.length === 2 && range.every((page) => isBetween(page, 1, MAX_PAGES)),
    )
  );
}

function isBetween(value: unknown, minimum: number, maximum: number): boolean {
  return isWhole(value) && value >= minimum && value <= maximum;
}

function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value);
}
