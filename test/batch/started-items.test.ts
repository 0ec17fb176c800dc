import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { EMPTY_BOARD } from '../../src/batch/board';
import {
  type Lane,
  mergeStartedItems,
  startedItemsFromChecks,
  type StartedItems,
  isCertainlyStarted,
} from '../../src/batch/started-items';
import { checkStartedItems } from '../../src/client/batch/earlier-runs';
import type { RunState } from '../../src/temporal/workflow-executions';

const lane = (next: number, end: number, state: Lane['state'] = 'pending'): Lane => ({ next, end, state });

describe('isCertainlyStarted', () => {
  const started: StartedItems = {
    cursor: 9,
    lanes: [lane(1, 3), lane(4, 6, 'starting'), lane(6, 9, 'running')],
  };

  it.each<[number, boolean, string]>([
    [0, true, 'its lane has ended'],
    [1, false, 'its lane has not started it'],
    [2, false, 'an earlier item of its lane has not ended'],
    [3, true, 'its lane has passed it'],
    [4, false, 'its lane may have started it, but this is not certain'],
    [6, true, 'its lane has started it'],
    [7, false, 'an earlier item of its lane is running'],
    [9, false, 'it is after the cursor'],
  ])('returns for item %i: %s, because %s', (item, isStarted) => {
    expect(isCertainlyStarted(started, item)).toBe(isStarted);
    expect(isCertainlyStarted(null, item)).toBe(false);
  });
});

describe('mergeStartedItems', () => {
  it.each<[string, StartedItems, StartedItems | null, StartedItems]>([
    [
      'a first run started exactly its own items',
      { cursor: 4, lanes: [lane(1, 4, 'running')] },
      null,
      { cursor: 4, lanes: [lane(1, 4, 'running')] },
    ],
    [
      'a lane that this run has not checked keeps the earlier state',
      { cursor: 2, lanes: [] },
      { cursor: 6, lanes: [lane(3, 6, 'running')] },
      { cursor: 6, lanes: [lane(3, 6, 'running')] },
    ],
    [
      'a lane that the earlier run has ended stays ended',
      { cursor: 3, lanes: [lane(1, 3)] },
      { cursor: 3, lanes: [] },
      { cursor: 3, lanes: [] },
    ],
    [
      'the run that started more items of a lane decides',
      { cursor: 6, lanes: [lane(1, 3), lane(5, 6)] },
      { cursor: 6, lanes: [lane(2, 3), lane(4, 6, 'running')] },
      { cursor: 6, lanes: [lane(2, 3), lane(5, 6)] },
    ],
    [
      'an item that the earlier run started stays started',
      { cursor: 3, lanes: [lane(1, 3, 'starting')] },
      { cursor: 3, lanes: [lane(1, 3, 'running')] },
      { cursor: 3, lanes: [lane(1, 3, 'running')] },
    ],
    [
      'an item that this run started stays started',
      { cursor: 3, lanes: [lane(1, 3, 'running')] },
      { cursor: 3, lanes: [lane(1, 3)] },
      { cursor: 3, lanes: [lane(1, 3, 'running')] },
    ],
    [
      'a lane after the earlier runs is kept',
      { cursor: 4, lanes: [lane(2, 4, 'running')] },
      { cursor: 2, lanes: [] },
      { cursor: 4, lanes: [lane(2, 4, 'running')] },
    ],
    [
      'a lane is compared with the earlier state of the same lane',
      { cursor: 5, lanes: [lane(3, 5)] },
      { cursor: 5, lanes: [lane(0, 2, 'running'), lane(3, 5, 'running')] },
      { cursor: 5, lanes: [lane(3, 5, 'running')] },
    ],
  ])('%s', (_, current, earlier, merged) => {
    expect(mergeStartedItems(current, earlier)).toEqual(merged);
  });
});

describe('startedItemsFromChecks', () => {
  it.each<[string, Parameters<typeof startedItemsFromChecks>, StartedItems]>([
    [
      'an item that exists was started, and its lane continues after it',
      [0, [{ lane: lane(0, 3), firstMissing: 1, isLastRunning: false }]],
      { cursor: 3, lanes: [lane(0, 3, 'running')] },
    ],
    [
      'a lane whose items all exist and have ended is left out',
      [0, [{ lane: lane(0, 2), firstMissing: 2, isLastRunning: false }]],
      { cursor: 2, lanes: [] },
    ],
    [
      'the last item of a lane is kept while it runs',
      [0, [{ lane: lane(0, 2), firstMissing: 2, isLastRunning: true }]],
      { cursor: 2, lanes: [lane(1, 2, 'running')] },
    ],
    [
      'an item that was certainly started stays started, although it does not exist',
      [2, [{ lane: lane(0, 2, 'running'), firstMissing: 0, isLastRunning: false }]],
      { cursor: 2, lanes: [lane(0, 2, 'running')] },
    ],
    [
      'an item that may have been started and does not exist was not started',
      [2, [{ lane: lane(0, 2, 'starting'), firstMissing: 0, isLastRunning: false }]],
      { cursor: 2, lanes: [lane(0, 2)] },
    ],
    [
      'lanes after the last started one are left out',
      [0, [2, 4].map((end) => ({ lane: lane(end - 2, end), firstMissing: 1, isLastRunning: true }))],
      { cursor: 2, lanes: [lane(0, 2, 'running')] },
    ],
    [
      'lanes are in the order of their items, although their checks ended in another order',
      [0, [4, 6, 2].map((end) => ({ lane: lane(end - 2, end), firstMissing: end, isLastRunning: true }))],
      { cursor: 6, lanes: [lane(1, 2, 'running'), lane(3, 4, 'running'), lane(5, 6, 'running')] },
    ],
  ])('%s', (_, [cursor, checks], started) => {
    const normalized = checks.map((each) => ({
      ...each,
      firstMissing: Math.max(each.lane.next, each.firstMissing),
    }));
    expect(startedItemsFromChecks(cursor, normalized)).toEqual(started);
  });
});

it('startedItemsFromChecks keeps at most 2,000 lanes, and moves the cursor to the first lane that it omits', () => {
  const checks = Array.from({ length: 2_001 }, (_, item) => ({
    ...{ lane: lane(item, item + 1), firstMissing: item + 1, isLastRunning: true },
  }));
  const started = startedItemsFromChecks(0, checks);
  expect([started.cursor, started.lanes.length]).toEqual([2_000, 2_000]);
});

/**
 * Simulates one run of a batch that is interrupted after some steps. Each step advances the lane with its number. Without
 * such a lane, the step adds a lane.
 *
 * @param ends the number after the last item of each job
 * @param startedItems the items that earlier runs started; this run adds its own started items
 */
function simulateRun(
  ends: readonly number[],
  steps: readonly number[],
  before: StartedItems | null,
  startedItems: Set<number>,
) {
  let { cursor } = EMPTY_BOARD;
  let startLimit = 0;
  let lanes: Lane[] = [];
  const advanced = (current: Lane): Lane => {
    const { next, end, state } = current;
    if (state === 'running') return lane(next + 1, end);
    if (state === 'starting')
      return lane(next, end, startedItems.size < startedItems.add(next).size ? state : 'running');
    if (startedItems.has(next) && isCertainlyStarted(before, next)) return lane(next + 1, end);
    return next < startLimit ? lane(next, end, 'starting') : current;
  };
  for (const step of steps) {
    startLimit = Math.min(ends.at(-1) ?? 0, Math.max(cursor + 3, before?.cursor ?? 0));
    const current = lanes[step];
    const end = ends.find((each) => each > cursor);
    if (current !== undefined)
      lanes = lanes
        .flatMap((each) => (each === current ? [advanced(current)] : [each]))
        .filter((each) => each.next < each.end);
    else if (end !== undefined) {
      lanes.push(lane(cursor, end));
      cursor = end;
    }
  }
  return { started: { cursor, lanes }, startLimit };
}

describe('the items that earlier runs started', () => {
  const jobs = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 6 });
  const runs = fc.array(fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 30 }), { maxLength: 4 });
  const deletions = fc.array(fc.integer({ min: 0, max: 17 }), { maxLength: 3 });

  // Proves B9.
  it('are known, and stay known if an item is deleted, over any number of runs', async () => {
    await fc.assert(
      fc.asyncProperty(jobs, runs, deletions, async (lengths, all, deleted) => {
        const ends = lengths.map((_, job) => lengths.slice(0, job + 1).reduce((sum, each) => sum + each));
        const startedItems = new Set<number>();
        const missing = new Set<number>();
        let before: StartedItems | null = null;
        for (const steps of all) {
          const { started, startLimit } = simulateRun(ends, steps, before, startedItems);
          const endOfLane = (item: number) => Promise.resolve(ends.find((each) => each > item) ?? 0);
          const state = (item: number): RunState => (item % 2 === 0 ? 'running' : 'completed');
          const describeItem = (item: number) =>
            Promise.resolve(startedItems.has(item) && !missing.has(item) ? state(item) : null);
          before = await checkStartedItems(
            mergeStartedItems(started, before),
            startLimit,
            endOfLane,
            describeItem,
          );
          for (let item = 0; item < (ends.at(-1) ?? 0); item += 1)
            expect({ item, isStarted: isCertainlyStarted(before, item) }).toEqual({
              item,
              isStarted: startedItems.has(item),
            });
          // Only started items that a check has found are deleted. An item that is deleted before its first check leaves no trace.
          for (const item of deleted) if (startedItems.has(item)) missing.add(item);
        }
      }),
      { numRuns: 1_000, seed: 1 },
    );
  });

  // Proves B11.
  it.each([
    ['the first half of the items exists', (item: number) => item < 50_000],
    ['every second item exists', (item: number) => item % 2 === 0],
  ])(
    'include the running item in less than 100,000 characters of JSON for a batch of 100,000 items if %s',
    async (_, exists) => {
      const stateOf = (item: number): RunState => (item === 100 ? 'running' : 'completed');
      const describeItem = (item: number) => Promise.resolve(exists(item) ? stateOf(item) : null);
      const endOfLane = (item: number) => Promise.resolve(item + 1);
      const started = await checkStartedItems({ cursor: 0, lanes: [] }, 100_000, endOfLane, describeItem);
      expect(started.lanes).toContainEqual(lane(100, 101, 'running'));
      expect(JSON.stringify(started).length).toBeLessThan(100_000);
      for (let item = 0; item < 4_000; item += 1)
        expect(isCertainlyStarted(started, item)).toBe(exists(item));
    },
  );
});
