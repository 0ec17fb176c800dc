import { type Checked, count, objectOf, orNull, time } from '../contract/checks';
import { isRequestFailure, type RequestFailure } from '../contract/request-failure';

/** The latest failed reads and sends in a row. */
export const isFailureStreak = objectOf({
  /** The failure of the latest request. The value is null if the latest request did not fail. */
  lastFailure: orNull(isRequestFailure),
  count,
  /** The latest responses with status 404 in a row. The value is null if the latest response is not a 404. */
  notFound: orNull(objectOf({ count, since: time })),
});
export type FailureStreak = Checked<typeof isFailureStreak>;

export const NO_FAILURES: FailureStreak = { lastFailure: null, count: 0, notFound: null };

/** Adds a failure. @param at when the failure was received, in milliseconds since the epoch */
export function addFailure(streak: FailureStreak, failure: RequestFailure, at: number): FailureStreak {
  const { count, since } = streak.notFound ?? { count: 0, since: at };
  return {
    lastFailure: failure,
    count: streak.count + 1,
    notFound: failure.httpStatus === 404 ? { count: count + 1, since } : null,
  };
}

/** The minimum number of responses with status 404, because a lagging replica may return a few of them. */
export const MIN_NOT_FOUND = 5;

/**
 * Returns whether a job that existed before no longer exists. The evidence is five responses with status 404 in a row that span
 * at least `maxStaleness`.
 *
 * @param requestedAt when the latest read was requested
 * @param freshFrom the time from which on a requested read is fresh, because an earlier read may describe the job before the
 * message
 */
export function isJobMissing(
  { notFound }: FailureStreak,
  requestedAt: number,
  maxStalenessMs: number,
  freshFrom = 0,
): boolean {
  if (notFound === null || requestedAt < freshFrom) return false;
  return notFound.count >= MIN_NOT_FOUND && requestedAt - notFound.since >= maxStalenessMs;
}

/** Returns whether the agent service does not allow the request: a 403. A 403 with `Retry-After` is a rate limit. */
export function isForbidden(failure: RequestFailure | null): failure is RequestFailure {
  return failure?.httpStatus === 403 && failure.isRateLimit !== true;
}

/**
 * Returns whether the agent service rejects the API key: a 401, or a 403 without `Retry-After`. A 401, and a 403 on a later read,
 * only delay a follow-up. A 403 on the first read or on the POST ends it.
 */
export function isUnauthorized({ lastFailure }: FailureStreak): boolean {
  return lastFailure?.httpStatus === 401 || isForbidden(lastFailure);
}
