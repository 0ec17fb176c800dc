import { CONCURRENCY, MAX_BATCH_ITEMS, type Tolerance } from '../../contract/batch';
import { batchIdProblem } from '../../contract/batch-id';
import type { BatchInput } from '../../contract/batch-workflows';
import { isRecord, typeName } from '../../contract/field-reader';

/** A checked input with its defaults filled in. */
export interface BatchPlan {
  readonly batchId: string;
  readonly concurrency: number;
  readonly tolerate: Tolerance;
  readonly items: BatchInput['items'];
  readonly handedOver: BatchInput['handedOver'];
}

/**
 * Checks the input of `followUpBatch`, whatever any client sent. The items themselves are checked one by one by their
 * follow-ups.
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
  if ((items === undefined) === (handedOver === undefined)) {
    problems.push('items: must be given, or handedOver in its place, and not both');
  }
  if (
    items !== undefined &&
    (!Array.isArray(items) || items.length === 0 || items.length > MAX_BATCH_ITEMS)
  ) {
    problems.push(`items: must be 1 to ${MAX_BATCH_ITEMS} items`);
  }
  if (handedOver !== undefined && !isHandOver(handedOver)) {
    problems.push('handedOver: must be { "items": N, "pages": P }, both whole numbers from 1');
  }
  if (problems.length > 0) return { problems };
  return { plan: { batchId, concurrency, tolerate, items, handedOver } as BatchPlan };
}

/** Why a value is no concurrency; undefined where it is one. */
export function concurrencyProblem(value: unknown): string | undefined {
  const { minimum, maximum } = CONCURRENCY;
  if (isWhole(value) && value >= minimum && value <= maximum) return undefined;
  return `concurrency: must be a whole number from ${minimum} to ${maximum}`;
}

function isTolerance(value: unknown): value is Tolerance {
  if (value === null) return true;
  if (!isRecord(value)) return false;
  if ('items' in value) return isWhole(value.items) && value.items >= 0;
  return typeof value.percent === 'number' && value.percent >= 0 && value.percent <= 100;
}

function isHandOver(value: unknown): boolean {
  if (!isRecord(value)) return false;
  return [value.items, value.pages].every((each) => isWhole(each) && each >= 1 && each <= MAX_BATCH_ITEMS);
}

function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value);
}
