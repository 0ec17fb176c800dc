import { createHash } from 'node:crypto';
import { BATCH_POLLING_INITIAL, type BatchItem } from '../../core/batch';
import { isRecord, type JsonObject } from '../../core/json';
import type { FollowUpRequest } from '../../core/request';
import { fieldOf, REQUEST_FIELDS, requestWith } from '../../core/request-options';
import { parseDuration } from '../../core/units';

/**
 * Hexadecimal digits of an item's key: 64 bits, by which two of 100,000 items meet with a probability of 3 in
 * 10,000,000,000. It is looked for nevertheless.
 */
const KEY_DIGITS = 16;

/** Hexadecimal digits of a default batch id. */
export const BATCH_ID_DIGITS = 20;

/**
 * The key of an item: a hash of what it sends to whom, and of how often the batch has done so before. It knows neither
 * line numbers nor options, so that a file that was sorted anew, or an option that was changed, sends nothing twice.
 *
 * @param occurrence from 1: which of the items with the same project, job and prompt it is
 */
export function itemKey(projectId: string, jobId: string, promptDigest: string, occurrence: number): string {
  return sha256([projectId, jobId, promptDigest, occurrence]).slice(0, KEY_DIGITS);
}

/**
 * The id of a batch that was given none: a hash of its items, in any order and with any options. The same file again
 * finds the batch that there is. An id that changed with order or options would send every message once more when a
 * batch is resumed with a file that was exported anew or a flag more; {@link itemsDigest} tells such a change.
 */
export function defaultBatchId(items: readonly BatchItem[]): string {
  return sha256(items.map(identityOf).sort()).slice(0, BATCH_ID_DIGITS);
}

/**
 * The SHA-256 of everything that a batch's pages are made of: items, options and order. Two inputs of the same batch id
 * make the same pages only if it is the same.
 */
export function itemsDigest(items: readonly BatchItem[]): string {
  const hash = createHash('sha256');
  for (const { key, request, promptDigest } of items) {
    // The digest stands for the prompt. Another client's request may have its fields in another order.
    hash.update(JSON.stringify([key, promptDigest, tidyRequest({ ...request }, '')]) + '\n');
  }
  return hash.digest('hex');
}

function identityOf({ key, request, promptDigest }: BatchItem): string {
  return JSON.stringify(key ?? [request.projectId, request.jobId, request.requestId, promptDigest]);
}

function sha256(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

const usual = parseDuration(BATCH_POLLING_INITIAL);
const USUAL_MS = 'ms' in usual ? usual.ms : 0;

/**
 * A request of a batch with the cadence of batches: polling begins at `BATCH_POLLING_INITIAL`, or at the caller's own
 * maximum where that is shorter. Whatever is no request stays as it is, for the checker to say so.
 */
export function withBatchCadence(input: unknown): unknown {
  if (!isRecord(input)) return input;
  const polling = input.polling ?? {};
  if (!isRecord(polling) || (polling.initial ?? undefined) !== undefined) return input;
  return { ...input, polling: { ...polling, initial: firstInterval(polling.maximum) } };
}

function firstInterval(maximum: unknown): unknown {
  const longest = maximum === undefined || maximum === null ? undefined : parseDuration(maximum);
  return longest !== undefined && 'ms' in longest && longest.ms < USUAL_MS ? maximum : BATCH_POLLING_INITIAL;
}

/**
 * A copy of a checked request, its fields always in the same order and none of them null, so that equal requests are
 * equal as JSON too.
 */
export function tidyRequest(checked: JsonObject, prompt: string): FollowUpRequest {
  const fields = Object.keys(REQUEST_FIELDS).map((field) => [field, fieldOf(checked, field)] as const);
  // The checker has seen every field, and refuses others.
  return { ...requestWith(fields), prompt } as unknown as FollowUpRequest;
}
