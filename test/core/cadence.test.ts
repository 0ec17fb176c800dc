import { expect, it } from '@jest/globals';
import type { JobAnswer } from '../../src/core/activities';
import { nextWait, pollInterval } from '../../src/core/cadence';
import { afterReading, NO_TROUBLE } from '../../src/core/tally';

const polling = { initialMs: 5_000, growth: 0.1, maximumMs: 300_000, jitter: 0.1, timerPolls: 6 };
const [low, high] = [() => 0, () => 0.999_999];
const HOUR = 3_600_000;

// test/bench has the interval at every age.
it('the interval between polls varies at its maximum too, so that follow-ups fall out of step', () => {
  expect([low, high].map((random) => pollInterval(polling, 10 * HOUR, random))).toEqual([270_000, 330_000]);
});

// The simulation has the waits that a Retry-After asks for.
it.each([
  ['doubles with each answer in a row', 503, 1, 0, high, 5_000],
  ['doubles up to five minutes', 503, 1_000, 0, high, 300_000],
  ['is by chance between half of that and all', 503, 6, 0, low, 80_000],
  ['is never shorter than that of a healthy service', 503, 1, HOUR, low, 300_000],
  ['is the initial interval while the job may be gone', 404, 4, HOUR, low, 5_000],
])('the wait after trouble %s', (_, httpStatus, times, ageMs, random, expected) => {
  const answer: JobAnswer = { kind: 'trouble', label: 'x', message: 'x', httpStatus };
  const trouble = Array.from({ length: times }).reduce<typeof NO_TROUBLE>(
    (before) => afterReading(before, answer, 0),
    NO_TROUBLE,
  );
  expect(nextWait({ ...polling, jitter: 0 }, ageMs, trouble, random)).toBe(expected);
});
