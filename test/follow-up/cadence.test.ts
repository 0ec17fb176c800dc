import { expect, it } from '@jest/globals';
import { limitRetryAfter, nextWaitMs, pollIntervalMs } from '../../src/follow-up/cadence';
import { addFailure, NO_FAILURES } from '../../src/follow-up/failure-streak';
import { httpFailure, ms, PLAN, REFUSED } from './states';

const POLLING = { ...PLAN.polling, initialMs: 5_000, growth: 0.1, maximumMs: 300_000 };
const HOUR = 3_600;
const LOWEST = 0;
const HIGHEST = 1;

// test/tools/polling-schedules.test.ts checks the number of polls and the delay until a turn's end is seen.
it.each([
  ['starts with the initial interval', 0, 5],
  ['stays at the initial interval while a tenth of the age is shorter', 50, 5],
  ['is a tenth of the turn’s age', 600, 60],
  ['grows up to the maximum', HOUR, 300],
  ['stays at the maximum', 10 * HOUR, 300],
])('the poll interval %s', (_, age, interval) => {
  expect(pollIntervalMs(POLLING, ms(age), () => 0.5)).toBe(ms(interval));
});

it('the poll interval also varies at its maximum, so that follow-ups do not poll at the same time', () => {
  const polling = { ...POLLING, jitter: 0.1 };
  const intervals = [LOWEST, HIGHEST].map((random) => pollIntervalMs(polling, ms(10 * HOUR), () => random));
  expect(intervals).toEqual([270_000, 330_000]);
});

it.each([
  [-5_000, 1_000],
  [0, 1_000],
  [60_000, 60_000],
  [Number.MAX_SAFE_INTEGER, 3_600_000],
])('a Retry-After of %i ms is limited to between 1 s and 1 h: %i ms', (waitMs, expected) => {
  expect(limitRetryAfter(waitMs)).toBe(expected);
});

/** Makes a streak with the same failure `count` times in a row. */
function failures(failure: ReturnType<typeof httpFailure>, count: number) {
  return Array.from({ length: count }).reduce<typeof NO_FAILURES>(
    (streak) => addFailure(streak, failure, 0),
    NO_FAILURES,
  );
}

it.each([
  ['is the poll interval without a failure', NO_FAILURES, HOUR, HIGHEST, 300],
  ['doubles with each failure', failures(httpFailure(503), 1), 0, HIGHEST, 5],
  ['doubles with each failure', failures(httpFailure(503), 2), 0, HIGHEST, 10],
  ['doubles with each failure', failures(REFUSED, 4), 0, HIGHEST, 40],
  ['has a maximum of five minutes', failures(httpFailure(503), 20), 0, HIGHEST, 300],
  ['varies between half and all of the doubled interval', failures(httpFailure(503), 6), 0, LOWEST, 80],
  ['varies between half and all of the doubled interval', failures(httpFailure(503), 6), 0, HIGHEST, 160],
  ['is never shorter than the poll interval', failures(httpFailure(503), 1), HOUR, LOWEST, 300],
  [
    'is the initial interval after a 404, because the job may be deleted',
    failures(httpFailure(404), 5),
    HOUR,
    HIGHEST,
    5,
  ],
  ['doubles again after more than five 404s in a row', failures(httpFailure(404), 6), 0, HIGHEST, 160],
  [
    'doubles after a gateway’s 404',
    failures({ label: 'not_a_job', message: 'x', gatewayStatus: 404 }, 6),
    0,
    HIGHEST,
    160,
  ],
  [
    'is the Retry-After, if the agent service requested one',
    failures(httpFailure(429, { retryAfterMs: ms(90) }), 7),
    0,
    HIGHEST,
    90,
  ],
  [
    'is at most an hour after a Retry-After',
    failures(httpFailure(503, { retryAfterMs: ms(86_400) }), 1),
    0,
    HIGHEST,
    3_600,
  ],
  [
    'is the Retry-After of the latest failure only',
    addFailure(failures(httpFailure(429, { retryAfterMs: ms(90) }), 1), httpFailure(503), 0),
    0,
    HIGHEST,
    10,
  ],
])('the wait after failures %s', (_, streak, age, random, expected) => {
  expect(nextWaitMs(POLLING, ms(age), streak, () => random)).toBe(ms(expected));
});

it('jitter never shortens a Retry-After', () => {
  const streak = failures(httpFailure(429, { retryAfterMs: ms(60) }), 1);
  const waits = [LOWEST, HIGHEST].map((random) =>
    nextWaitMs({ ...POLLING, jitter: 0.5 }, 0, streak, () => random),
  );
  expect(waits).toEqual([60_000, 90_000]);
});
