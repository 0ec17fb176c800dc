import { describe, expect, it } from '@jest/globals';
import type { ReadTrouble, Trouble } from '../../src/core/activities';
import { nextWait, pollInterval, troubleWait } from '../../src/core/cadence';
import { afterReading, NO_TROUBLE } from '../../src/core/tally';

const polling = { initialMs: 5_000, growth: 0.1, maximumMs: 300_000, jitter: 0.1, timerPolls: 6 };
const low = () => 0;
const middle = () => 0.5;
const high = () => 0.999_999;
const minutes = 60_000;

function troubleOf(answer: Partial<ReadTrouble>, times = 1): Trouble {
  const read = { kind: 'trouble', label: 'x', message: 'x', ...answer } as const;
  return Array.from({ length: times }).reduce(
    (trouble: Trouble) => afterReading(trouble, read, 0),
    NO_TROUBLE,
  );
}

describe('the interval between polls', () => {
  it.each([
    [50_000, 5_000],
    [10 * minutes, 60_000],
    [12 * 60 * minutes, 300_000],
  ])('of a turn that is %d ms old is a tenth of its age, within bounds: %d ms', (ageMs, expected) => {
    expect(pollInterval(polling, ageMs, middle)).toBe(expected);
  });

  it('varies by the jitter, at the maximum too, so that follow-ups at the maximum fall out of step', () => {
    expect(pollInterval(polling, 600 * minutes, low)).toBe(270_000);
    expect(pollInterval(polling, 600 * minutes, high)).toBe(330_000);
    expect(pollInterval({ ...polling, jitter: 0 }, 600 * minutes, low)).toBe(300_000);
  });
});

describe('the wait after trouble', () => {
  it('doubles with each answer in a row, up to five minutes, by chance between half and all of it', () => {
    expect([1, 2, 3, 4].map((count) => troubleWait(polling, count, high))).toEqual([
      5_000, 10_000, 20_000, 40_000,
    ]);
    expect(troubleWait(polling, 1, low)).toBe(2_500);
    expect(troubleWait(polling, 1_000, high)).toBe(300_000);
  });

  it('is never shorter than that of a healthy service', () => {
    expect(nextWait(polling, 50 * minutes, troubleOf({ httpStatus: 503 }), middle)).toBe(300_000);
    expect(nextWait(polling, 0, troubleOf({ httpStatus: 503 }, 6), high)).toBe(160_000);
  });

  it('after a 404 is the initial interval, so that a job that is gone is known soon', () => {
    expect(nextWait(polling, 50 * minutes, troubleOf({ httpStatus: 404 }, 4), middle)).toBe(5_000);
  });
});

describe('the wait that a Retry-After asks for', () => {
  it.each([
    [20_000, 20_000],
    [0, 1_000],
    [-5_000, 1_000],
    [1e15, 3_600_000],
  ])('of %d ms is bounded to %d ms', (askedMs, expected) => {
    const limited = troubleOf({ httpStatus: 429, retryAfterMs: askedMs });
    expect(nextWait(polling, 0, limited, low)).toBe(expected);
  });

  it('counts for the next wait only', () => {
    const limited = troubleOf({ httpStatus: 429, retryAfterMs: 90_000 });
    expect(nextWait(polling, 0, limited, low)).toBe(90_000);
    const after = afterReading(limited, { kind: 'trouble', label: 'x', message: 'x' }, 0);
    expect(nextWait(polling, 0, after, high)).toBe(10_000);
  });
});
