import type { Polling } from '../contract/request';
import { type FailureStreak, MIN_NOT_FOUND } from './failure-streak';

/** Returns a number from 0 to 1. A replay of a workflow repeats the numbers of `Math.random`. */
export type Random = () => number;

/** A follow-up notices within minutes that the agent service works again. */
const MAX_FAILURE_WAIT_MS = 5 * 60_000;

/** The limits of a `Retry-After`: no request is repeated at once, and services count their limits by the hour. */
const MIN_RETRY_AFTER_MS = 1_000;
const MAX_RETRY_AFTER_MS = 3_600_000;

export function limitRetryAfter(waitMs: number): number {
  return Math.max(MIN_RETRY_AFTER_MS, Math.min(MAX_RETRY_AFTER_MS, waitMs));
}

/**
 * The time in milliseconds from one poll to the next. Jitter applies at the maximum too, because otherwise thousands of
 * follow-ups would poll at the same moment.
 *
 * @param ageMs the age of the turn, or of the wait for an idle job
 */
export function pollIntervalMs(polling: Polling, ageMs: number, random: Random): number {
  const grown = Math.max(polling.initialMs, Math.min(polling.maximumMs, polling.growth * ageMs));
  return Math.round(grown * (1 + polling.jitter * (2 * random() - 1)));
}

/**
 * The time in milliseconds from the latest response to the next request.
 *
 * - After a readable response, this is the poll interval.
 * - After a `Retry-After`, jitter only lengthens the wait.
 * - After one of the first five responses with status 404, this is the initial interval, because the job may be deleted.
 * - After any other failure, the wait doubles with each failure up to five minutes, and is never shorter than the interval.
 */
export function nextWaitMs(polling: Polling, ageMs: number, streak: FailureStreak, random: Random): number {
  const { lastFailure, count, notFound } = streak;
  if (lastFailure === null) return pollIntervalMs(polling, ageMs, random);
  if (lastFailure.retryAfterMs !== undefined)
    return Math.round(limitRetryAfter(lastFailure.retryAfterMs) * (1 + polling.jitter * random()));
  if (notFound !== null && notFound.count <= MIN_NOT_FOUND) return pollIntervalMs(polling, 0, random);
  const backoffMs = Math.min(MAX_FAILURE_WAIT_MS, polling.initialMs * 2 ** Math.min(count - 1, 20));
  // The wait is random, so that the follow-ups do not all return at once.
  return Math.max(pollIntervalMs(polling, ageMs, random), Math.round(backoffMs * (0.5 + 0.5 * random())));
}
