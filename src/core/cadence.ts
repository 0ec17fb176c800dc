import type { Trouble } from './activities';
import type { Polling } from './request';

/** A service that is back is noticed within minutes. */
const MAX_TROUBLE_WAIT_MS = 5 * 60_000;

/** A zero or a date in the past must not make a hot loop; the service counts its limit by the hour. */
const MIN_RETRY_AFTER_MS = 1_000;
const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * How long the server's answer that a send is still wanted is valid. The send's start-to-close leaves 15 s beyond its two
 * exchanges: a POST that begins within it ends before the server gives the send up.
 */
export const SEND_PERMISSION_MS = 10_000;

/** In a workflow `Math.random`, which a replay repeats. */
export type Random = () => number;

/** Jitter applies at the maximum too; else thousands would poll in step. */
export function pollInterval(polling: Polling, ageMs: number, random: Random): number {
  const grown = Math.max(polling.initialMs, Math.min(polling.maximumMs, polling.growth * ageMs));
  return Math.round(grown * (1 + polling.jitter * (2 * random() - 1)));
}

/** Random, so that not all return at once to a service that comes back. */
export function troubleWait(polling: Polling, failures: number, random: Random): number {
  const ceiling = Math.min(MAX_TROUBLE_WAIT_MS, polling.initialMs * 2 ** Math.min(failures - 1, 20));
  return Math.round(ceiling * (0.5 + 0.5 * random()));
}

export function boundedRetryAfter(askedMs: number): number {
  return Math.max(MIN_RETRY_AFTER_MS, Math.min(MAX_RETRY_AFTER_MS, askedMs));
}

/**
 * The wait after an answer. Jitter only lengthens a `Retry-After`. After a 404 it is `polling.initial`: the job may be gone.
 * In other trouble the service is never asked more often than a healthy one.
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

/** The initial interval, but not beyond `at`, when time alone decides; in trouble, as {@link nextWait}. */
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
