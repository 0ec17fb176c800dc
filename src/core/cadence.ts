import type { Trouble } from './activities';
import type { Polling } from './request';

/** A service that is back is noticed within minutes. */
const MAX_TROUBLE_WAIT_MS = 5 * 60_000;

/** No hot loop by a zero or a date in the past; and the service counts its limit by the hour. */
const MIN_RETRY_AFTER_MS = 1_000;
const MAX_RETRY_AFTER_MS = 3_600_000;

/** How long a send's permission is valid: less than the 15 s that its start-to-close leaves beyond its two exchanges. */
export const SEND_PERMISSION_MS = 10_000;

/** From 0 to 1. In a workflow a replay repeats those of `Math.random`. */
export type Random = () => number;

/** Jitter applies at the maximum too, or thousands would poll in step. */
export function pollInterval(polling: Polling, ageMs: number, random: Random): number {
  const grown = Math.max(polling.initialMs, Math.min(polling.maximumMs, polling.growth * ageMs));
  return Math.round(grown * (1 + polling.jitter * (2 * random() - 1)));
}

export function boundedRetryAfter(askedMs: number): number {
  return Math.max(MIN_RETRY_AFTER_MS, Math.min(MAX_RETRY_AFTER_MS, askedMs));
}

/**
 * The wait after an answer. Jitter only lengthens a `Retry-After`. After a 404 it is `polling.initial`, as the job may be gone;
 * in other trouble never less than that for a healthy service.
 *
 * @param ageMs the age of the turn, or of the wait for its beginning
 */
export function nextWait(
  polling: Polling,
  ageMs: number,
  { last, count }: Trouble,
  random: Random = Math.random,
): number {
  if (last === null) return pollInterval(polling, ageMs, random);
  if (last.retryAfterMs !== undefined)
    return Math.round(boundedRetryAfter(last.retryAfterMs) * (1 + polling.jitter * random()));
  if (last.httpStatus === 404) return pollInterval(polling, 0, random);
  const ceilingMs = Math.min(MAX_TROUBLE_WAIT_MS, polling.initialMs * 2 ** Math.min(count - 1, 20));
  // Random, so that not all return at once.
  return Math.max(pollInterval(polling, ageMs, random), Math.round(ceilingMs * (0.5 + 0.5 * random())));
}

/** The initial interval, but not beyond `at`, when time alone decides; in trouble, as {@link nextWait}. */
export function waitUntil(at: number, polling: Polling, trouble: Trouble, now: number): number {
  const waitMs = nextWait(polling, 0, trouble);
  return trouble.last === null ? Math.max(0, Math.min(waitMs, at - now)) : waitMs;
}
