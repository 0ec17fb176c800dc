import { type BatchItem, MAX_BATCH_ITEMS } from './batch';
import { MAX_WORKFLOW_ID_BYTES } from './bounds';
import { pageWorkflowId, RUN_CHARACTERS } from './workflow-id';

/** Characters of a batch id: with a hyphen and an item's key it still is a `requestId`. */
export const MAX_BATCH_ID_CHARACTERS = 100;

/**
 * Why a text is no batch id; undefined where it is one: 1 to 100 characters, no control characters, no lone surrogates,
 * and percent-encoded short enough for the workflow ids of the batch's pages.
 */
export function batchIdProblem(batchId: unknown): string | undefined {
  if (typeof batchId !== 'string') return `must be a text, not of type ${typeof batchId}`;
  if (batchId === '') return `must not be empty; give 1 to ${MAX_BATCH_ID_CHARACTERS} characters`;
  const length = Array.from(batchId).length;
  if (length > MAX_BATCH_ID_CHARACTERS)
    return `must have at most ${MAX_BATCH_ID_CHARACTERS} characters; it has ${length}`;
  if (!batchId.isWellFormed()) return 'must not hold a lone surrogate: it has no UTF-8 form';
  if (/\p{Cc}/u.test(batchId)) return 'must not hold control characters';
  // Percent-encoded, hence one byte a character. There can't be more pages than items.
  const bytes = pageWorkflowId(batchId, 'x'.repeat(RUN_CHARACTERS), MAX_BATCH_ITEMS).length;
  if (bytes > MAX_WORKFLOW_ID_BYTES)
    return `is too long: percent-encoded it would make workflow ids of ${bytes} bytes, and at most ${MAX_WORKFLOW_ID_BYTES} are possible; shorten it, or use letters and digits, which are not encoded`;
  return undefined;
}

/** The `requestId` of an item: its own, or made of the batch's id and its key. */
export function requestIdOf(batchId: string, item: Pick<BatchItem, 'key' | 'request'>): string {
  return item.request.requestId ?? `${batchId}-${item.key ?? ''}`;
}
