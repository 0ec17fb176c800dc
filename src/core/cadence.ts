import type { Trouble } from './activities';
import type { Polling } from './request';

/**
 * The longest wait between two tries while the service is in trouble: a service that is down for an hour is asked
 * twelve times, and one that is back is noticed within minutes.
 */
const MAX_TROUBLE_WAIT_MS = 5 * 60_000;

/**
 * The bounds of a `Retry-After`. A zero, a negative wait or a date in the past must not make a hot loop. The service
 * counts its limit by the hour, so no reasonable wait is longer.
 */
const MIN_RETRY_AFTER_MS = 1_000;
const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * How long the server's answer that a send is still wanted is valid, in milliseconds. Connecting takes at most 10 s, and the
 * send's start-to-close leaves 15 s beyond its two exchanges, so that a POST that begins within it ends before the server
 * gives the send up.
 */
export const SEND_PERMISSION_MS = 10_000;

/** A random number from 0 (inclusive) to 1 (exclusive): in a workflow `Math.random`, which a replay repeats. */
export type Random = () => number;

/**
 * The wait before the next poll of a turn that is `ageMs` old: a share of its age, so that detection is late by at
 * most that share, within bounds. The jitter applies at the maximum too; otherwise thousands of follow-ups that have
 * reached it would poll in step for ever.
 */
export function pollInterval(polling: Polling, ageMs: number, random: Random): number {
  const grown = Math.max(polling.initialMs, Math.min(polling.maximumMs, polling.growth * ageMs));
  return Math.round(grown * (1 + polling.jitter * (2 * random() - 1)));
}

/**
 * The wait after the `failures`th answer in a row that said nothing about the job. It doubles from `polling.initial`, and
 * is random between half and all of that, so that not all clients return at once to a service that comes back.
 */
export function troubleWait(polling: Polling, failures: number, random: Random): number {
  const ceiling = Math.min(MAX_TROUBLE_WAIT_MS, polling.initialMs * 2 ** Math.min(failures - 1, 20));
  return Math.round(ceiling * (0.5 + 0.5 * random()));
}

/**
 * The wait that a `Retry-After` of `askedMs` stands for, bounded. Jitter only lengthens it: the service has named the
 * earliest moment.
 */
export function retryAfterWait(polling: Polling, askedMs: number, random: Random): number {
  const bounded = Math.max(MIN_RETRY_AFTER_MS, Math.min(MAX_RETRY_AFTER_MS, askedMs));
  return Math.round(bounded * (1 + polling.jitter * random()));
}

/**
 * The wait after an answer, good or bad, in milliseconds.
 *
 * A `Retry-After` counts for this one wait. After a 404 the wait is `polling.initial`, because the job may be gone and the
 * caller should learn it soon. Other trouble backs off, and is never asked more often than a healthy service.
 *
 * @param ageMs the age of the turn, or of the wait for its beginning
 */
export function nextWait(polling: Polling, ageMs: number, trouble: Trouble, random: Random): number {
  const { last, count } = trouble;
  if (last === null) return pollInterval(polling, ageMs, random);
  if (last.retryAfterMs !== undefined) return retryAfterWait(polling, last.retryAfterMs, random);
  if (last.httpStatus === 404) return pollInterval(polling, 0, random);
  return Math.max(pollInterval(polling, ageMs, random), troubleWait(polling, count, random));
}
