import { createHash } from 'node:crypto';
import type { BatchItem } from '../../contract/batch';

/**
 * Hexadecimal digits of an item's key: 64 bits, by which two of 100,000 items meet with a probability of 3 in
 * 10,000,000,000. It is looked for nevertheless.
 */
export const KEY_DIGITS = 16;

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
    // The digest stands for the prompt.
    hash.update(JSON.stringify([key, promptDigest, { ...request, prompt: '' }]) + '\n');
  }
  return hash.digest('hex');
}

function identityOf({ key, request, promptDigest }: BatchItem): string {
  return JSON.stringify(key ?? [request.projectId, request.jobId, request.requestId, promptDigest]);
}

function sha256(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}
