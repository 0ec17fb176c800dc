import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type BatchMemo,
  type Begun,
  begunBy,
  isBeyondTolerance,
  type Lane,
  type Position,
  START,
  wasBegun,
  withEnd,
} from '../../../src/core/batch/state';
import { askedFor } from '../../../src/client/batch/start';
import { batchRows, progressOf } from '../../../src/core/batch/progress';
import type { RunState } from '../../../src/temporal/existing-run';
import { ITEM_END } from '../../harness/samples';
import type { End, Outcome } from '../../../src/core/end';

const MEMO: BatchMemo = {
  ...START,
  ...{ batchId: 'nightly', items: 50, digest: null, again: null, startedAt: '2026-01-01T00:00:00.000Z' },
  ...{ concurrency: 50, tolerate: null, rounds: 0, paused: false, ending: null },
};

/**
 * One run of a batch, broken off after some steps. Each takes up the lane of its number, or deals one.
 *
 * @param ends the number after the last item of each job
 * @param begun the items that were begun, to which this run adds
 */
function runOf(ends: readonly number[], steps: readonly number[], before: Begun | null, begun: Set<number>) {
  let { cursor } = START;
  let bound = 0;
  let lanes: Lane[] = [];
  const moved = (lane: Lane): Lane => {
    const [next, end, state] = lane;
    if (state === 'open') return [next + 1, end, 'free'];
    if (state === 'may') return [next, end, begun.size < begun.add(next).size ? 'may' : 'open'];
    if (begun.has(next) && wasBegun(before, next)) return [next + 1, end, state];
    return next < bound ? [next, end, 'may'] : lane;
  };
  for (const step of steps) {
    bound = Math.min(ends.at(-1) ?? 0, Math.max(cursor + 3, before?.cursor ?? 0));
    const lane = lanes[step];
    const end = ends.find((each) => each > cursor);
    if (lane !== undefined)
      lanes = lanes
        .flatMap((each) => (each === lane ? [moved(lane)] : [each]))
        .filter(([next, last]) => next < last);
    else if (end !== undefined) {
      lanes.push([cursor, end, 'free']);
      cursor = end;
    }
  }
  return { position: { ...START, cursor, lanes, begun: before }, bound };
}

describe('what earlier runs have begun', () => {
  const jobs = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 6 });
  const runs = fc.array(fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 30 }), { maxLength: 4 });
  const deletions = fc.array(fc.integer({ min: 0, max: 17 }), { maxLength: 3 });

  // Proves B9.
  it('is known, and stays known where an item is deleted, over any number of runs', async () => {
    await fc.assert(
      fc.asyncProperty(jobs, runs, deletions, async (lengths, all, deleted) => {
        const ends = lengths.map((_, job) => lengths.slice(0, job + 1).reduce((sum, each) => sum + each));
        const begun = new Set<number>();
        const gone = new Set<number>();
        let before: Begun | null = null;
        for (const steps of all) {
          const { position, bound } = runOf(ends, steps, before, begun);
          const endOfLane = (item: number) => Promise.resolve(ends.find((each) => each > item) ?? 0);
          const state = (item: number): RunState => (item % 2 === 0 ? 'running' : 'completed');
          const look = (item: number) =>
            Promise.resolve(begun.has(item) && !gone.has(item) ? state(item) : null);
          before = await askedFor(begunBy(position), bound, endOfLane, look);
          for (let item = 0; item < (ends.at(-1) ?? 0); item += 1)
            expect({ item, was: wasBegun(before, item) }).toEqual({ item, was: begun.has(item) });
          // Only what was known before: nobody can tell of what is deleted earlier.
          for (const item of deleted) if (begun.has(item)) gone.add(item);
        }
      }),
      { numRuns: 1_000, seed: 1 },
    );
  });

  // Proves B11.
  it.each([
    ['the first half', (item: number) => item < 50_000],
    ['every second one', (item: number) => item % 2 === 0],
  ])('has the open items, and does not grow with the others, of which %s is there', async (_, isThere) => {
    const stateOf = (item: number): RunState => (item === 100 ? 'running' : 'completed');
    const look = (item: number) => Promise.resolve(isThere(item) ? stateOf(item) : null);
    const endOfLane = (item: number) => Promise.resolve(item + 1);
    const begun = await askedFor({ cursor: 0, lanes: [] }, 100_000, endOfLane, look);
    expect(begun.lanes).toContainEqual([100, 101, 'open']);
    expect(JSON.stringify(begun).length).toBeLessThan(50_000);
    for (let item = 0; item < 4_000; item += 1) expect(wasBegun(begun, item)).toBe(isThere(item));
  });
});

// The simulation has the counts.
it('the first twenty failures of a batch are named, be they jobs or follow-ups without one', () => {
  const many = (outcome: Outcome) => Array<Outcome>(18).fill(outcome);
  const outcomes = ['completed', 'archived', ...many('failed'), ...many('gone')];
  const { firstFailures } = outcomes.reduce<Position>(
    (position, outcome, nth) => withEnd(position, `w-${nth}`, { ...ITEM_END, outcome } as End),
    START,
  );
  const named = outcomes.map((outcome, nth) => ({ workflowId: `w-${nth}`, outcome, message: null }));
  expect(firstFailures).toEqual(named.slice(2, 22));
});

it('the tolerance is a number of failures, or an exact percentage of all items; null is none', () => {
  const isBeyond = (tolerate: BatchMemo['tolerate'], items: number, gone: number) => {
    // A job that has failed is one, too.
    const byStatus = { completed: 7, archived: 5, failed: 1 };
    return isBeyondTolerance({ tolerate, items }, { ...START, settled: 13 + gone, byStatus });
  };
  const isLimit = (tolerate: BatchMemo['tolerate'], items: number, failures: number) =>
    !isBeyond(tolerate, items, failures - 1) && isBeyond(tolerate, items, failures);
  expect(isLimit({ items: 3 }, 50, 3)).toBe(true);
  expect(isLimit({ percent: 2.5 }, 50, 1)).toBe(true);
  for (let percent = 1; percent <= 100; percent += 1)
    expect(isLimit({ percent: percent / 10 }, 100_000, percent * 100)).toBe(true);
  expect(isBeyond(null, 50, 49)).toBe(false);
});

const RESET = 'Somebody has reset the batch, ended its activity or deleted its items. 3 of 50 items ended.';
const BEYOND = { ending: 'tolerance', settled: 9, byStatus: { completed: 8 } } as const;
const BEYOND_WORDS = '1 item failed, more than the tolerance allows. 9 of 50 items';
const ALL_ENDED = { settled: 50, byFailure: { FollowUpRejected: 2 } };

it.each<[string, Partial<BatchMemo>, Parameters<typeof progressOf>[1], string, string]>([
  ['paused', { paused: true }, 'running', '', '`batch resume`'],
  ['ending', { ending: 'cancel-running' }, 'running', '', ''],
  ['ending', { ending: 'broken-off' }, 'running', RESET, ''],
  ['terminated', {}, 'terminated', '', '`batch run` with the same file'],
  // By its update only, without the request of a cancellation.
  ['cancelled', { ending: 'cancel-running' }, 'failed', '', '`batch run` with the same file'],
  ['incomplete', { ending: 'broken-off' }, 'completed', RESET, '`batch run` with the same file'],
  ['tolerance-exceeded', BEYOND, 'completed', BEYOND_WORDS, '`batch retry` sends what was not sent'],
  ['done', ALL_ENDED, 'completed', '', '`batch retry` sends what was not sent'],
])('a batch is %s with %j while it is %s, says why, and what to do', (wanted, memo, run, why, next) => {
  const summary = progressOf({ ...MEMO, settled: 3, ...memo }, run);
  const { state, message } = summary;
  const rows = new Map(batchRows({ state, message, summary }));
  expect([state, rows.has('why'), rows.has('what to do')]).toEqual([wanted, why !== '', next !== '']);
  expect(rows.get('why') ?? '').toContain(why);
  expect(rows.get('what to do') ?? '').toContain(next);
});
