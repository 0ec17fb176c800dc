import { expect, it } from '@jest/globals';
import { addFailure, isJobMissing, isUnauthorized, NO_FAILURES } from '../../src/follow-up/failure-streak';
import { httpFailure, ms, REFUSED } from './states';

it('failures in a row are counted, and the latest failure is kept', () => {
  const once = addFailure(NO_FAILURES, httpFailure(503), ms(10));
  expect(once).toEqual({ lastFailure: httpFailure(503), count: 1, notFound: null });
  expect(addFailure(once, REFUSED, ms(20))).toEqual({
    lastFailure: REFUSED,
    count: 2,
    notFound: null,
  });
});

it('responses with status 404 in a row are counted with the time of the first 404, until another response is received', () => {
  const first = addFailure(addFailure(NO_FAILURES, httpFailure(503), ms(10)), httpFailure(404), ms(20));
  expect(first.notFound).toEqual({ count: 1, since: ms(20) });
  const second = addFailure(first, httpFailure(404), ms(30));
  expect(second.notFound).toEqual({ count: 2, since: ms(20) });
  expect(addFailure(second, httpFailure(503), ms(40)).notFound).toBeNull();
});

it('a gateway’s 404 does not count as a 404 of the agent service', () => {
  const gateway = { label: 'not_a_job', message: 'from a gateway', gatewayStatus: 404 };
  expect(addFailure(NO_FAILURES, gateway, ms(10)).notFound).toBeNull();
});

// The first 404 was received at 100 s, and maxStaleness is 30 s.
it.each([
  ['five 404s that span maxStaleness', 5, 130, 0, true],
  ['four 404s', 4, 130, 0, false],
  ['five 404s that span a shorter time', 5, 129.999, 0, false],
  ['five 404s, and the latest read is fresh', 5, 130, 130, true],
  ['five 404s, and the latest read is not fresh', 5, 130, 131, false],
])(
  'a job is missing only after five 404s that span maxStaleness: %s',
  (_, count, requestedAt, freshFrom, isMissing) => {
    const streak = { lastFailure: httpFailure(404), count, notFound: { count, since: ms(100) } };
    expect(isJobMissing(streak, ms(requestedAt), ms(30), ms(freshFrom))).toBe(isMissing);
  },
);

it('a job is not missing without a 404', () => {
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

it('a 403 with Retry-After is a rate limit, and does not mean that the API key is rejected', () => {
  const limited = httpFailure(403, { isRateLimit: true });
  expect(isUnauthorized(addFailure(NO_FAILURES, limited, 0))).toBe(false);
});

it('the API key is not rejected if no request failed, or the failed request had no response', () => {
  expect([NO_FAILURES, addFailure(NO_FAILURES, REFUSED, 0)].map((each) => isUnauthorized(each))).toEqual([
    false,
    false,
  ]);
});
