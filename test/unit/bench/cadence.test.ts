import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { gearsPlot } from '../../../bench/cadence/gears-plot';
import { GEARS_PLOT_PATH, PAGE_PATH, PLOT_PATH, withTables } from '../../../bench/cadence/page';
import { followUpCost } from '../../../bench/cadence/cost';
import { cadencePlot } from '../../../bench/cadence/plot';
import { OTHERS, OURS } from '../../../bench/cadence/schedules';
import { simulate, watch } from '../../../bench/cadence/simulate';
import { cadenceTables, LIMITS } from '../../../bench/cadence/tables';

const minutes = 60_000;
const middle = () => 0.5;
const simulation = simulate();

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

  it('counts polls by timers, in process and by retries', () => {
    const everyFiveSeconds = Array.from({ length: 40 }, (_, index) => 5_000 * (index + 1));
    const [none, three, four, forty] = [0, 3, 4, 40].map((polls) =>
      followUpCost(everyFiveSeconds.slice(0, polls)),
    );

    expect(three?.events).toBe((none?.events ?? NaN) + 3 * 11);
    expect(four).toMatchObject({ events: (three?.events ?? NaN) + 6, actions: (three?.actions ?? NaN) + 1 });
    // The first heartbeat after the first read of the activity, at 20 s; then one every 24 s until 200 s.
    expect(forty).toMatchObject({ events: four?.events, actions: (four?.actions ?? NaN) + 8 });
  });

  it('counts a retry for each long wait, and an activity for each half-hour', () => {
    const everyMinute = Array.from({ length: 70 }, (_, index) => (index + 1) * minutes);
    const [four, ten, last, next] = [4, 10, 34, 35].map((polls) => followUpCost(everyMinute.slice(0, polls)));

    expect(ten).toMatchObject({ events: four?.events, actions: (four?.actions ?? NaN) + 6 });
    // The activity of the fourth poll has half an hour of patience: the 34th is its last one.
    expect(last?.events).toBe(four?.events);
    expect(next?.events).toBe((four?.events ?? NaN) + 6);
  });
});

describe('the defaults of polling', () => {
  it('watch a turn of two hours with at most 70 polls and 100 history events', () => {
    expect(simulation.targets.maxPolls).toBeLessThanOrEqual(LIMITS.maxPolls);
    expect(simulation.targets.maxEvents).toBeLessThanOrEqual(LIMITS.maxEvents);
  });

  it.each(simulation.rows)(
    'see the end of a turn of $turnMs ms within a tenth of its age and a second, 95 times of 100',
    ({ ours }) => {
      expect(ours.p95OfAllowed).toBeLessThanOrEqual(LIMITS.p95OfAllowed);
    },
  );
});

describe('docs/performance.md', () => {
  it('has the tables that npm run bench:cadence makes', () => {
    const page = readFileSync(PAGE_PATH, 'utf8');

    expect(page).toBe(withTables(page, cadenceTables(simulation)));
  });

  it('has the pictures that npm run bench:cadence draws', () => {
    expect(readFileSync(PLOT_PATH, 'utf8')).toBe(cadencePlot(simulation));
    expect(readFileSync(GEARS_PLOT_PATH, 'utf8')).toBe(gearsPlot());
  });
});
