import { BATCH_POLLING_INITIAL } from '../../contract/batch';
import { parseDuration } from '../../contract/duration';
import { isRecord, type JsonObject } from '../../contract/field-reader';
import type { FollowUpRequest } from '../../contract/request';
import { fieldOf, REQUEST_FIELDS, requestWith } from '../../contract/request-options';

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
