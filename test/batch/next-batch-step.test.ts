import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { EMPTY_BOARD } from '../../src/batch/board';
import type { BatchMemo } from '../../src/batch/memo';
import {
  type BatchStep,
  GROUP_SIZE,
  nextBatchStep,
  type RoundContext,
} from '../../src/batch/next-batch-step';
import type { Lane } from '../../src/batch/started-items';

const NOW = 1_000_000;

/** A batch of 100 items. The cursor is at item 10, and the items before item 50 may start. */
const MEMO: BatchMemo = {
  ...EMPTY_BOARD,
  ...{
    batchId: 'nightly',
    items: 100,
    digest: null,
    retryScope: null,
    startedAt: '2026-01-01T00:00:00.000Z',
  },
  ...{
    concurrency: 5,
    maxFailures: null,
    activityCount: 1,
    isPaused: false,
    stopReason: null,
    activityStartedAt: 0,
  },
  ...{ cursor: 10, startLimit: 50, ended: 6, byStatus: { completed: 6 } },
};

const ROUND: RoundContext = {
  ...{ count: 0, busyLanes: new Set(), hasChanged: false, isStartTimeOver: false },
  ...{ now: NOW, activityStartedAt: NOW - 1_000 },
};

const lane = (next: number, end: number, state: Lane['state'] = 'pending'): Lane => ({ next, end, state });
const pending = (count: number) => Array.from({ length: count }, (_, nth) => lane(nth, nth + 1));

/** The differences from MEMO and ROUND. Unless `board` changes a field, the board has the memo's value. */
interface Changes {
  readonly memo?: Partial<BatchMemo>;
  readonly board?: Partial<BatchMemo>;
  readonly round?: Partial<RoundContext>;
}

function step({ memo = {}, board = {}, round = {} }: Changes): BatchStep {
  const settings = { ...MEMO, ...memo };
  return nextBatchStep({ ...settings, ...board }, settings, { ...ROUND, ...round });
}

const REPORT = { do: 'report' } as const;
const nextRound = (waitMs: number) => ({ do: 'next round', waitMs }) as const;
const start = (lanes: readonly Lane[]) => ({ do: 'start', lanes }) as const;
const ONE_RUNS = { board: { lanes: [lane(9, 10, 'running')] }, round: { count: 1 } } as const;
const FULL = { round: { count: 5 } } as const;
const DUE = { activityStartedAt: NOW - 60_001, count: 5 };

describe('nextBatchStep', () => {
  it.each<[string, Changes, BatchStep]>([
    ['adds as many lanes as further items may start', ONE_RUNS, { do: 'add lanes', count: 4 }],
    [
      'adds no lanes if the pending lanes use the whole concurrency',
      { board: { lanes: pending(5) } },
      start(pending(5)),
    ],
    [
      'adds no lane if the cursor is at startLimit',
      { board: { cursor: 50, lanes: pending(2) } },
      start(pending(2)),
    ],
    [
      'starts only as many items as the concurrency allows',
      { board: { lanes: pending(7) }, round: { count: 3 } },
      start(pending(2)),
    ],
    [
      'starts at most one group with one permission',
      { memo: { concurrency: 100 }, board: { cursor: 50, lanes: pending(20) } },
      start(pending(GROUP_SIZE)),
    ],
    [
      'adds a lane for each item that may start next to a lane whose job has a running follow-up',
      {
        memo: { concurrency: 2 },
        board: { lanes: pending(1) },
        round: { count: 1, busyLanes: new Set([1]) },
      },
      { do: 'add lanes', count: 1 },
    ],
    [
      'adds no lane while running follow-ups of pending lanes use the whole concurrency',
      {
        memo: { concurrency: 1 },
        board: { lanes: pending(1) },
        round: { count: 1, busyLanes: new Set([1]) },
      },
      nextRound(5_000),
    ],
    [
      'starts nothing in a lane whose job has a running follow-up',
      { board: { cursor: 50, lanes: pending(2) }, round: { count: 3, busyLanes: new Set([1]) } },
      start([lane(1, 2)]),
    ],
    [
      'starts no item at startLimit or beyond',
      { board: { cursor: 50, lanes: [lane(50, 60), lane(49, 50)] } },
      start([lane(49, 50)]),
    ],
    [
      'starts nothing while the whole concurrency is used',
      { ...FULL, board: { lanes: pending(1) } },
      nextRound(5_000),
    ],
    [
      'starts nothing if a lower concurrency was set',
      { board: { lanes: pending(9) }, round: { count: 9 } },
      nextRound(5_000),
    ],
    [
      'starts nothing after the round has lasted long enough',
      { round: { isStartTimeOver: true } },
      nextRound(5_000),
    ],
    ['starts nothing while the batch is paused', { ...ONE_RUNS, memo: { isPaused: true } }, nextRound(5_000)],
    [
      'waits for the running item of a paused batch that also has an item to start',
      { ...ONE_RUNS, memo: { isPaused: true }, board: { lanes: [lane(8, 9), lane(9, 10, 'running')] } },
      nextRound(5_000),
    ],
    [
      'reports a paused batch that has nothing running',
      { memo: { isPaused: true }, board: { lanes: pending(2) } },
      REPORT,
    ],
    [
      'reports at once when more items failed than maxFailures',
      { ...ONE_RUNS, memo: { maxFailures: { items: 0 }, ended: 7 } },
      REPORT,
    ],
    [
      'waits for the running items of a batch that exceeded it',
      { ...ONE_RUNS, memo: { stopReason: 'max-failures', maxFailures: { items: 0 }, ended: 7 } },
      nextRound(5_000),
    ],
    [
      'reports when none of these runs any more',
      { memo: { stopReason: 'max-failures' }, board: { lanes: pending(2) } },
      REPORT,
    ],
    [
      'reports at once when the batch is cancelled',
      { ...ONE_RUNS, memo: { stopReason: 'cancelled' } },
      REPORT,
    ],
    [
      'cancels the running items if the batch is cancelled with cancelRunning',
      { ...FULL, memo: { stopReason: 'cancel-running' } },
      { do: 'cancel items', waitMs: 5_000 },
    ],
    ['reports when all cancelled items have ended', { memo: { stopReason: 'cancel-running' } }, REPORT],
    ['reports when all items have ended', { memo: { startLimit: 100, cursor: 100, ended: 100 } }, REPORT],
    ['reports when it needs a higher startLimit', { ...FULL, board: { cursor: 50 } }, REPORT],
  ])('%s', (_, changes, expected) => {
    expect(step(changes)).toEqual(expected);
  });

  it.each<[string, Changes, BatchStep]>([
    ['reports progress when a report is due', { board: { ended: 7 }, round: DUE }, REPORT],
    ['reports started items when a report is due', { board: { cursor: 11 }, round: DUE }, REPORT],
    [
      'reports the progress of a paused batch when a report is due',
      { memo: { isPaused: true }, board: { ended: 7, lanes: [lane(9, 10, 'running')] }, round: DUE },
      REPORT,
    ],
    ['reports nothing if nothing changed', { round: DUE }, nextRound(5_000)],
    [
      'makes the second report more than 4 s after the activity started',
      { board: { ended: 7 }, round: { activityStartedAt: NOW - 4_001, count: 5 } },
      REPORT,
    ],
    [
      'does not make the second report earlier',
      { board: { ended: 7 }, round: { activityStartedAt: NOW - 4_000, count: 5 } },
      nextRound(5_000),
    ],
    [
      'postpones a report that would cost more than two events per ended item',
      { memo: { activityCount: 14 }, board: { ended: 13 }, round: DUE },
      nextRound(5_000),
    ],
    [
      'makes the postponed report when enough items have ended',
      { memo: { activityCount: 14 }, board: { ended: 14 }, round: DUE },
      REPORT,
    ],
    [
      'waits for the last items if every item may start',
      { memo: { startLimit: 100, cursor: 100 }, ...FULL },
      nextRound(5_000),
    ],
  ])('%s', (_, changes, expected) => {
    expect(step(changes)).toEqual(expected);
  });

  it.each<[string, Changes, number]>([
    ['nothing changes', {}, 5_000],
    ['the round changed something', { round: { hasChanged: true } }, 1_000],
    ['an item ended quickly a moment ago', { board: { quickEndAt: NOW - 19_999 } }, 1_000],
    ['an item ended quickly some time ago', { board: { quickEndAt: NOW - 20_000 } }, 5_000],
    [
      'an item that can’t proceed changes in every round',
      { board: { blockedItem: { workflowId: 'w', reason: 'rejected' } }, round: { hasChanged: true } },
      5_000,
    ],
  ])('the wait before the next round if %s', (_, { board = {}, round = {} }, waitMs) => {
    expect(step({ board, round: { count: 5, ...round } })).toEqual(nextRound(waitMs));
  });

  it('never exceeds the concurrency, and starts only pending lanes of jobs without a running follow-up, each once', () => {
    const states = fc.constantFrom<Lane['state']>('pending', 'starting', 'running');
    const changes = fc.record({
      lanes: fc.array(states, { maxLength: 30 }),
      otherRunning: fc.integer({ min: 0, max: 30 }),
      busy: fc.integer({ min: 0, max: 30 }),
      concurrency: fc.integer({ min: 1, max: 30 }),
      cursor: fc.integer({ min: 30, max: 100 }),
      startLimit: fc.integer({ min: 30, max: 100 }),
      isPaused: fc.boolean(),
      stopReason: fc.constantFrom(
        null,
        'max-failures' as const,
        'cancelled' as const,
        'cancel-running' as const,
      ),
    });
    fc.assert(
      fc.property(changes, ({ lanes: all, otherRunning, busy, cursor, ...memo }) => {
        const lanes = all.map((state, nth) => lane(nth, nth + 1, state));
        const pendingLanes = lanes.filter(({ state }) => state === 'pending');
        const count = lanes.length - pendingLanes.length + otherRunning;
        // Each busy lane has a running follow-up that is the next item of no lane.
        const busyLanes = new Set(pendingLanes.slice(0, Math.min(busy, otherRunning)).map(({ end }) => end));
        const next = step({ memo, board: { lanes, cursor }, round: { count, busyLanes } });
        const starting = next.do === 'start' ? next.lanes : [];
        const canStart = (each: Lane) => each.state === 'pending' && !busyLanes.has(each.end);
        expect(new Set(starting.filter(canStart)).size).toBe(starting.length);
        const isStopped = memo.isPaused || memo.stopReason !== null;
        expect(starting.length).toBeLessThanOrEqual(isStopped ? 0 : Math.max(0, memo.concurrency - count));
        const laneCount = next.do === 'add lanes' ? lanes.length + next.count : 0;
        expect(laneCount).toBeLessThanOrEqual(isStopped ? 0 : memo.concurrency);
      }),
      { numRuns: 1_000, seed: 1 },
    );
  });
});
