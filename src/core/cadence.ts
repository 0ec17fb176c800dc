import type { Trouble } from './wire';
import type { Polling } from './request';

/** A service that is down for an hour is asked twelve times, and one that is back is noticed within minutes. */
const MAX_TROUBLE_WAIT_MS = 5 * 60_000;

/** A zero or a date in the past must not make a hot loop; the service counts its limit by the hour. */
const MIN_RETRY_AFTER_MS = 1_000;
const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * How long the server's answer that a send is still wanted is valid. Connecting takes at most 10 s, and the send's
 * start-to-close leaves 15 s beyond its two exchanges: a POST that begins within it ends before the server gives the send up.
 */
export const SEND_PERMISSION_MS = 10_000;

/** A random number from 0 (inclusive) to 1 (exclusive): in a workflow `Math.random`, which a replay repeats. */
export type Random = () => number;

/** A share of the turn's age, within bounds. Jitter applies at the maximum too; else thousands would poll in step. */
export function pollInterval(polling: Polling, ageMs: number, random: Random): number {
  const grown = Math.max(polling.initialMs, Math.min(polling.maximumMs, polling.growth * ageMs));
  return Math.round(grown * (1 + polling.jitter * (2 * random() - 1)));
}

/** Doubles from `polling.initial`; random, so that not all clients return at once to a service that comes back. */
export function troubleWait(polling: Polling, failures: number, random: Random): number {
  const ceiling = Math.min(MAX_TROUBLE_WAIT_MS, polling.initialMs * 2 ** Math.min(failures - 1, 20));
  return Math.round(ceiling * (0.5 + 0.5 * random()));
}

/** From one second to one hour. */
export function boundedRetryAfter(askedMs: number): number {
  return Math.max(MIN_RETRY_AFTER_MS, Math.min(MAX_RETRY_AFTER_MS, askedMs));
}

/**
 * The wait after an answer, in milliseconds. A `Retry-After` counts for this one wait, and jitter only lengthens it. After a
 * 404 it is `polling.initial`: the job may be gone. In other trouble the service is never asked more often than a healthy one.
 *
 * @param ageMs the age of the turn, or of the wait for its beginning
 */
export function nextWait(polling: Polling, ageMs: number, trouble: Trouble, random: Random): number {
  const { last, count } = trouble;
  if (last === null) return pollInterval(polling, ageMs, random);
  if (last.retryAfterMs !== undefined)
    return Math.round(boundedRetryAfter(last.retryAfterMs) * (1 + polling.jitter * random()));
  if (last.httpStatus === 404) return pollInterval(polling, 0, random);
  return Math.max(pollInterval(polling, ageMs, random), troubleWait(polling, count, random));
}

/** The initial interval, and not beyond `at`, when time alone decides: at once if that has passed. In trouble, as after it. */
export function waitUntil(
  at: number,
  polling: Polling,
  trouble: Trouble,
  now: number,
  random: Random,
): number {
  const waitMs = nextWait(polling, 0, trouble, random);
  return trouble.last === null ? Math.max(0, Math.min(waitMs, at - now)) : waitMs;
}
