import type { Polling } from '../contract/request';
import { type FailureStreak, MIN_NOT_FOUND } from './failure-streak';

/** Returns a number from 0 to 1. In a workflow, this is `Math.random`, whose numbers a replay repeats. */
export type Random = () => number;

/**
 * The maximum of the backoff after failures, so that a follow-up detects within minutes that the agent service works again. A
 * longer poll interval or `Retry-After` still applies.
 */
const MAX_FAILURE_WAIT_MS = 5 * 60_000;

/**
 * The limits of a `Retry-After`. With the minimum, no request is repeated at once. The maximum is an hour, because services count
 * their rate limits by the hour.
 */
const MIN_RETRY_AFTER_MS = 1_000;
const MAX_RETRY_AFTER_MS = 3_600_000;

/** Applies the minimum and the maximum to the value of a `Retry-After`, in milliseconds. */
export function limitRetryAfter(waitMs: number): number {
  return Math.max(MIN_RETRY_AFTER_MS, Math.min(MAX_RETRY_AFTER_MS, waitMs));
}

/**
 * Returns the time in milliseconds from one poll to the next. Jitter applies at the maximum too, because otherwise thousands of
 * follow-ups would poll at the same moment.
 *
 * @param ageMs the age of the turn, or of the wait for an idle job
 */
export function pollIntervalMs(polling: Polling, ageMs: number, random: Random): number {
  const grown = Math.max(polling.initialMs, Math.min(polling.maximumMs, polling.growth * ageMs));
  return Math.round(grown * (1 + polling.jitter * (2 * random() - 1)));
}

/**
 * Returns the time in milliseconds from the latest response to the next request.
 *
 * - After a readable response, the wait is the poll interval.
 * - After a `Retry-After`, the wait is its value within the limits. Jitter can only lengthen this wait.
 * - After one of the first five responses with status 404, the wait is the initial interval, so that a deleted job is
 *   detected soon.
 * - After any other failure, the wait doubles with each failure up to five minutes. The wait is never shorter than the poll
 *   interval.
 */
export function nextWaitMs(polling: Polling, ageMs: number, streak: FailureStreak, random: Random): number {
  const { lastFailure, count, notFound } = streak;
  if (lastFailure === null) return pollIntervalMs(polling, ageMs, random);
  if (lastFailure.retryAfterMs !== undefined)
    return Math.round(limitRetryAfter(lastFailure.retryAfterMs) * (1 + polling.jitter * random()));
  if (notFound !== null && notFound.count <= MIN_NOT_FOUND) return pollIntervalMs(polling, 0, random);
  const backoffMs = Math.min(MAX_FAILURE_WAIT_MS, polling.initialMs * 2 ** Math.min(count - 1, 20));
  // The wait is random, so that many follow-ups do not send their requests at the same moment.
  return Math.max(pollIntervalMs(polling, ageMs, random), Math.round(backoffMs * (0.5 + 0.5 * random())));
}
