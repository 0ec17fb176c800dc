import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { OURS } from '../../bench/cadence/schedules';
import { simulate, watch } from '../../bench/cadence/simulate';
import { cadenceTable, PAGE_PATH, withTable } from '../../bench/cadence/tables';
import { seededRandom } from '../../sandbox/random';

const minutes = 60_000;
const rows = simulate();

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

it('docs/performance.md has the table that npm run bench:cadence makes', () => {
  const page = readFileSync(PAGE_PATH, 'utf8');
  expect(page).toBe(withTable(page, cadenceTable(rows)));
});
