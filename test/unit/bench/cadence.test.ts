import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { OTHERS, OURS } from '../../../bench/cadence/schedules';
import { simulate, watch } from '../../../bench/cadence/simulate';
import { cadenceTables, PAGE_PATH, withTables } from '../../../bench/cadence/tables';
import { seededRandom } from '../../../sandbox/random';

const minutes = 60_000;
const middle = () => 0.5;
const rows = simulate();

describe('the simulation', () => {
  it.each([
    ['core-lro', [2, 4, 6, 8, 10]],
    ['gax', [0.1, 0.23, 0.399]],
    ['Google LRO', [5, 12.5, 23.75]],
    ['a minute', [60, 120]],
  ])('polls as %s does', (name, firstPolls) => {
    const schedule = OTHERS.find((other) => other.name === name) ?? OURS;
    const { pollsAtMs } = watch(schedule, 2 * minutes, middle);

    expect(pollsAtMs.slice(0, firstPolls.length).map((ms) => Math.round(ms) / 1_000)).toEqual(firstPolls);
  });

  it.each([
    ['gax', 60],
    ['Google LRO', 45],
  ])('lets no wait of %s grow beyond its maximum', (name, maximum) => {
    const schedule = OTHERS.find((other) => other.name === name) ?? OURS;
    const [last = 0, beforeLast = 0] = watch(schedule, 60 * minutes, middle).pollsAtMs.toReversed();

    expect((last - beforeLast) / 1_000).toBeCloseTo(maximum);
  });

  it('counts lateness from the end of the turn to the poll that sees it', () => {
    expect(watch(OURS, 12_000, middle)).toEqual({
      turnMs: 12_000,
      pollsAtMs: [5_000, 10_000, 15_000],
      latenessMs: 3_000,
    });
  });
});

describe('the defaults of polling', () => {
  it.each(rows)(
    'see the end of a turn of $turnMs ms within a tenth of its age and a second, 95 times of 100',
    ({ ours }) => {
      expect(ours.p95OfAllowed).toBeLessThanOrEqual(1);
    },
  );

  it('watch a turn of two hours with at most 70 polls', () => {
    const polls = Array.from({ length: 500 }, (_, seed) => watch(OURS, 120 * minutes, seededRandom(seed)));

    expect(Math.max(...polls.map(({ pollsAtMs }) => pollsAtMs.length))).toBeLessThanOrEqual(70);
  });
});

describe('docs/performance.md', () => {
  it('has the tables that npm run bench:cadence makes', () => {
    const page = readFileSync(PAGE_PATH, 'utf8');

    expect(page).toBe(withTables(page, cadenceTables(rows)));
  });
});
