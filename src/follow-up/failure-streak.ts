import { type Checked, count, objectOf, orNull, time } from '../contract/checks';
import { isRequestFailure, type RequestFailure } from '../contract/activities';

/** The failed reads and sends in a row, up to the latest one. */
export const isFailureStreak = objectOf({
  /** Null if the latest request did not fail. */
  lastFailure: orNull(isRequestFailure),
  count,
  /** The responses with status 404 in a row, up to the latest response. */
  notFound: orNull(objectOf({ count, since: time })),
});
export type FailureStreak = Checked<typeof isFailureStreak>;

export const NO_FAILURES: FailureStreak = { lastFailure: null, count: 0, notFound: null };

/** @param at when the failure was received */
export function addFailure(streak: FailureStreak, failure: RequestFailure, at: number): FailureStreak {
  const { count, since } = streak.notFound ?? { count: 0, since: at };
  return {
    lastFailure: failure,
    count: streak.count + 1,
    notFound: failure.httpStatus === 404 ? { count: count + 1, since } : null,
  };
}

/** A replica that is behind returns a few responses with status 404. */
export const MIN_NOT_FOUND = 5;

/**
 * Whether a job that was read or sent to no longer exists: five responses with status 404 in a row that span `maxStaleness`.
 *
 * @param requestedAt when the latest read was requested
 * @param freshFrom a response to an earlier request may describe the job before the message
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

/**
 * Whether the agent service rejects the API key. A rotated key fixes this, so that it delays a follow-up and does not end it. A 403
 * with `Retry-After` is a rate limit.
 */
export function isUnauthorized({ lastFailure }: FailureStreak): boolean {
  return (
    lastFailure?.httpStatus === 401 ||
    (lastFailure?.httpStatus === 403 && lastFailure.retryAfterMs === undefined)
  );
}
