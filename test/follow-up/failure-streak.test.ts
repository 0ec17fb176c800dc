import { expect, it } from '@jest/globals';
import { addFailure, isJobMissing, isUnauthorized, NO_FAILURES } from '../../src/follow-up/failure-streak';
import { httpFailure, ms, REFUSED } from './states';

it('failures in a row are counted, and keep the latest one', () => {
  const once = addFailure(NO_FAILURES, httpFailure(503), ms(10));
  expect(once).toEqual({ lastFailure: httpFailure(503), count: 1, notFound: null });
  expect(addFailure(once, REFUSED, ms(20))).toEqual({
    lastFailure: REFUSED,
    count: 2,
    notFound: null,
  });
});

it('the responses with status 404 are counted from the first one, until another response comes', () => {
  const first = addFailure(addFailure(NO_FAILURES, httpFailure(503), ms(10)), httpFailure(404), ms(20));
  expect(first.notFound).toEqual({ count: 1, since: ms(20) });
  const second = addFailure(first, httpFailure(404), ms(30));
  expect(second.notFound).toEqual({ count: 2, since: ms(20) });
  expect(addFailure(second, httpFailure(503), ms(40)).notFound).toBeNull();
});

it('a 404 of a gateway is not a 404 of the agent service', () => {
  const gateway = { label: 'not_a_job', message: 'from a gateway', gatewayStatus: 404 };
  expect(addFailure(NO_FAILURES, gateway, ms(10)).notFound).toBeNull();
});

// The first of the 404s was received at 100 s, and maxStaleness is 30 s.
it.each([
  ['five 404s that span maxStaleness', 5, 130, 0, true],
  ['four 404s', 4, 130, 0, false],
  ['five 404s that span a shorter time', 5, 129.999, 0, false],
  ['five 404s, of which the latest is fresh', 5, 130, 130, true],
  ['five 404s, of which the latest is not fresh', 5, 130, 131, false],
])('a job is lost: %s', (_, count, requestedAt, freshFrom, isLost) => {
  const streak = { lastFailure: httpFailure(404), count, notFound: { count, since: ms(100) } };
  expect(isJobMissing(streak, ms(requestedAt), ms(30), ms(freshFrom))).toBe(isLost);
});

it('without a 404, no job is lost', () => {
  expect(isJobMissing(addFailure(NO_FAILURES, httpFailure(503), 0), ms(1_000), 0)).toBe(false);
});

it.each([
  [401, true],
  [403, true],
  [404, false],
  [429, false],
  [503, false],
])('the status %i means that the API key is rejected: %j', (httpStatus, expected) => {
  expect(isUnauthorized(addFailure(NO_FAILURES, httpFailure(httpStatus), 0))).toBe(expected);
});

it('a 403 with Retry-After is a rate limit, and no rejected API key', () => {
  const limited = httpFailure(403, { retryAfterMs: ms(60) });
  expect(isUnauthorized(addFailure(NO_FAILURES, limited, 0))).toBe(false);
});

it('without a failure, or without a response, no API key is rejected', () => {
  expect([NO_FAILURES, addFailure(NO_FAILURES, REFUSED, 0)].map((each) => isUnauthorized(each))).toEqual([
    false,
    false,
  ]);
});
