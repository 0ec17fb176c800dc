import { describe, expect, it } from '@jest/globals';
import {
  addLanes,
  applyFacts,
  type BatchBoard,
  EMPTY_BOARD,
  isMaxFailuresExceeded,
  type ItemFact,
  advanceLane,
  markStarting,
  isPossiblyStarted,
  withOutcome,
  withRound,
} from '../../src/batch/board';
import type { BatchMemo } from '../../src/batch/memo';
import type { Lane } from '../../src/batch/started-items';
import { type RecordedOutcome, createOutcomeWithoutReceipt, type Outcome } from '../../src/contract/outcome';
import { ITEM_RESULT } from '../harness/fixtures';

const STARTED_AT = Date.parse('2026-01-01T00:00:00.000Z');
const RUN = { stopReason: null, retryScope: null, startedAt: '2026-01-01T00:00:00.000Z' } as const;
const RETRY = { ...RUN, retryScope: 'unsent' } as const;
const RETRY_ALL = { ...RUN, retryScope: 'unsent-or-unknown' } as const;
const CANCELLED = { ...RUN, stopReason: 'cancel-running' } as const;

const lane = (next: number, end: number, state: Lane['state'] = 'pending'): Lane => ({ next, end, state });
const running = (isOfBatch = true): ItemFact => ({
  kind: 'running',
  workflowId: 'w',
  isStartedByBatch: isOfBatch,
});
const UNREADABLE: ItemFact = { kind: 'unreadable', workflowId: 'w', reason: 'no key' };

const COMPLETED: RecordedOutcome = ITEM_RESULT;
const UNSENT: RecordedOutcome = { ...createOutcomeWithoutReceipt('DeadlineExceeded'), delivery: 'not-sent' };
const UNKNOWN: RecordedOutcome = { ...createOutcomeWithoutReceipt('DeliveryUnknown'), delivery: 'unknown' };
const CONFLICT = createOutcomeWithoutReceipt('conflict');
const MISSING = createOutcomeWithoutReceipt('missing');

/** The fact that an item's run ended. The run started `afterMs` milliseconds after the batch, and took a minute. */
const ended = (outcome: RecordedOutcome, afterMs = 1_000, more: object = {}): ItemFact => ({
  ...{ kind: 'ended', workflowId: 'w', outcome, runId: 'run', startedAt: STARTED_AT + afterMs },
  closedAt: STARTED_AT + afterMs + 60_000,
  ...more,
});
const missing: ItemFact = { kind: 'ended', workflowId: 'w', outcome: MISSING };

describe('advanceLane', () => {
  type Row = [
    string,
    Lane['state'],
    ItemFact,
    typeof RUN | typeof RETRY | typeof RETRY_ALL | typeof CANCELLED,
  ];
  const stays = (state: Lane['state'], retriedRunId?: string) => ({
    lane: { ...lane(3, 5, state), ...(retriedRunId !== undefined && { retriedRunId }) },
    outcome: null,
  });
  const ends = (outcome: unknown) => ({ lane: lane(4, 5), outcome });

  it.each<[...Row, unknown]>([
    ['keeps a running item', 'running', running(), RUN, stays('running')],
    [
      'counts an item that another client started as running',
      'pending',
      running(false),
      RUN,
      stays('running'),
    ],
    [
      'keeps a running item of the batch while the batch is cancelled',
      'running',
      running(),
      CANCELLED,
      stays('running'),
    ],
    [
      'leaves an item of another client running when the batch is cancelled',
      ...(['running', running(false), CANCELLED] as const),
      ends(expect.objectContaining({ outcome: 'left-running' })),
    ],
    ['waits for an outcome that can’t be read', 'running', UNREADABLE, RUN, stays('running')],
    [
      'waits for an outcome that can’t be read while the batch is cancelled',
      ...(['running', UNREADABLE, CANCELLED] as const),
      stays('running'),
    ],
    [
      'passes an item that has ended while the batch is cancelled',
      ...(['running', ended(COMPLETED), CANCELLED] as const),
      ends(COMPLETED),
    ],
    ['passes an item that has ended', 'running', ended(COMPLETED), RUN, ends(COMPLETED)],
    ['passes an unsent item in a first run', 'running', ended(UNSENT, -1), RUN, ends(UNSENT)],
    [
      'starts an item that may have been started but does not exist',
      'starting',
      missing,
      RUN,
      stays('pending'),
    ],
    ['never starts a started item that does not exist', 'running', missing, RUN, ends(MISSING)],
    ['never starts an item of an earlier run that does not exist', 'pending', missing, RUN, ends(MISSING)],
    [
      'retries an unsent run from before the retry',
      'pending',
      ended(UNSENT, -1),
      RETRY,
      stays('pending', 'run'),
    ],
    ['does not retry the run of the retry itself', 'running', ended(UNSENT, 1), RETRY, ends(UNSENT)],
    [
      'does not retry a run that started at the same time as the retry',
      ...(['pending', ended(UNSENT, 0), RETRY] as const),
      ends(UNSENT),
    ],
    ['keeps an unknown delivery in a retry', 'pending', ended(UNKNOWN, -1), RETRY, ends(UNKNOWN)],
    [
      'retries an unknown delivery with includeUnknown',
      'pending',
      ended(UNKNOWN, -1),
      RETRY_ALL,
      stays('pending', 'run'),
    ],
    ['starts a missing item with includeUnknown', 'pending', missing, RETRY_ALL, stays('pending')],
    ['does not start a missing item that this retry started', 'running', missing, RETRY_ALL, ends(MISSING)],
    ['never retries a conflict', 'pending', ended(CONFLICT, -1), RETRY_ALL, ends(CONFLICT)],
    [
      'passes an item for which the Temporal server starts no further run',
      ...(['starting', ended(UNSENT, -1, { isFinal: true }), RETRY] as const),
      ends(UNSENT),
    ],
  ])('%s', (_, state, fact, settings, expected) => {
    expect(advanceLane(lane(3, 5, state), fact, settings)).toEqual(expected);
  });
});

describe('isPossiblyStarted', () => {
  const board: BatchBoard = { ...EMPTY_BOARD, startedEarlier: { cursor: 2, lanes: [lane(1, 2)] } };
  it.each<[Lane, boolean]>([
    [lane(0, 1), true],
    [lane(1, 2), false],
    [lane(1, 2, 'starting'), true],
    [lane(5, 6), false],
    [lane(5, 6, 'running'), true],
  ])('returns for the lane %j: %s', (checkedLane, isPossible) => {
    expect(isPossiblyStarted(board, checkedLane)).toBe(isPossible);
  });
});

describe('applyFacts', () => {
  const board: BatchBoard = {
    ...EMPTY_BOARD,
    cursor: 6,
    lanes: [lane(0, 3, 'running'), lane(5, 6, 'starting')],
  };
  const apply = (...facts: [number, ItemFact][]) => applyFacts(board, RUN, new Map(facts));

  it('passes all ended items of a lane, counts each once, and removes the lane with its last item', () => {
    const facts = [0, 1, 2].map((item): [number, ItemFact] => [item, ended(item === 1 ? UNSENT : COMPLETED)]);
    const after = apply(...facts);
    expect(after).toMatchObject({
      ...{ lanes: [lane(5, 6, 'starting')], ended: 3, cursor: 6 },
      ...{ byStatus: { completed: 2 }, byFailure: { DeadlineExceeded: 1 } },
    });
    expect(after.firstFailures).toEqual([
      { workflowId: 'w', outcome: 'DeadlineExceeded', message: UNSENT.message },
    ]);
  });

  it('changes only the lanes of its facts, and stops at an item that has not ended', () => {
    const after = apply([0, ended(COMPLETED)], [1, running()], [2, ended(COMPLETED)]);
    expect(after).toMatchObject({ lanes: [lane(1, 3, 'running'), lane(5, 6, 'starting')], ended: 1 });
  });

  it('returns the same board if no lane changes, so that no heartbeat is needed', () => {
    expect(apply([0, running()])).toBe(board);
    expect(apply()).toBe(board);
    const retried = { ...board, lanes: [{ ...lane(0, 1), retriedRunId: 'run' }] };
    expect(applyFacts(retried, RETRY, new Map([[0, ended(UNSENT, -1)]]))).toBe(retried);
  });

  it('sets the run to retry, although the lane stays pending', () => {
    const pending = { ...board, lanes: [lane(0, 1)] };
    const after = applyFacts(pending, RETRY, new Map([[0, ended(UNSENT, -1)]]));
    expect(after.lanes).toEqual([{ ...lane(0, 1), retriedRunId: 'run' }]);
  });

  it('counts an item once if the next lane begins right after it', () => {
    const adjacent = { ...board, lanes: [lane(2, 3, 'running'), lane(3, 4, 'running')] };
    const after = applyFacts(
      adjacent,
      RUN,
      new Map([2, 3].map((item): [number, ItemFact] => [item, ended(COMPLETED)])),
    );
    expect(after).toMatchObject({ ended: 2, lanes: [] });
  });

  it('never mutates the board that is passed', () => {
    const frozen = JSON.stringify(board);
    apply([0, ended(COMPLETED)], [5, ended(COMPLETED)]);
    expect(JSON.stringify(board)).toBe(frozen);
  });

  it.each([
    ['records the end of an item that took 10 s as a quick end', 10_000, 11_000],
    ['records no quick end for an item that took longer', 10_001, 0],
  ])('%s', (_, durationMs, quickEndAt) => {
    const closedAt = STARTED_AT + 1_000 + durationMs;
    const after = apply([0, ended(COMPLETED, 1_000, { closedAt })]);
    expect(after.quickEndAt).toBe(quickEndAt === 0 ? 0 : STARTED_AT + quickEndAt);
  });

  it('keeps the latest quick end if an item that ended earlier is read later', () => {
    const after = applyFacts(
      { ...board, quickEndAt: STARTED_AT + 9_000 },
      RUN,
      new Map([[0, ended(COMPLETED, 1_000, { closedAt: STARTED_AT + 2_000 })]]),
    );
    expect(after).toMatchObject({ ended: 1, quickEndAt: STARTED_AT + 9_000 });
  });

  it('records no quick end for an item of an earlier run', () => {
    const earlier = { ...board, lanes: [lane(0, 3)] };
    const fact = ended(COMPLETED, 1_000, { closedAt: STARTED_AT + 2_000 });
    expect(applyFacts(earlier, RUN, new Map([[0, fact]])).quickEndAt).toBe(0);
  });
});

it('addLanes adds one pending lane for each end, starting at the cursor', () => {
  const board = addLanes({ ...EMPTY_BOARD, cursor: 2, lanes: [lane(0, 2, 'running')] }, [3, 7]);
  expect(board).toMatchObject({ cursor: 7, lanes: [lane(0, 2, 'running'), lane(2, 3), lane(3, 7)] });
  expect(addLanes(board, [])).toEqual(board);
});

it('markStarting marks only the given lanes, and keeps the run to retry', () => {
  const retried = { ...lane(0, 1), retriedRunId: 'run' };
  const board = markStarting({ ...EMPTY_BOARD, lanes: [retried, lane(1, 2)] }, [retried]);
  expect(board.lanes).toEqual([{ ...retried, state: 'starting' }, lane(1, 2)]);
});

it('withRound returns the same board if neither the number of running items nor the blocked item changed', () => {
  const blockedItem = { workflowId: 'w', reason: 'no key' };
  const board = withRound(EMPTY_BOARD, { open: 3, blockedItem });
  expect(board).toEqual({ ...EMPTY_BOARD, open: 3, blockedItem });
  expect(withRound(board, { open: 3, blockedItem: { ...blockedItem } })).toBe(board);
  expect(withRound(board, { open: 3, blockedItem: { ...blockedItem, reason: 'other' } })).not.toBe(board);
  expect(withRound(board, { open: 2, blockedItem })).toMatchObject({ open: 2, blockedItem });
  expect(withRound(board, { open: 3, blockedItem: { ...blockedItem, workflowId: 'v' } })).not.toBe(board);
  expect(withRound(board, { open: 3, blockedItem: null }).blockedItem).toBeNull();
  expect(withRound(EMPTY_BOARD, { open: 0, blockedItem: null })).toBe(EMPTY_BOARD);
});

it.each<[string, Partial<RecordedOutcome>, Partial<BatchBoard>]>([
  ['completed', { evidence: 'unchanged' }, { byStatus: { completed: 2 }, byEvidence: { unchanged: 2 } }],
  [
    'DeliveryUnknown',
    { evidence: null, delivery: 'unknown' },
    { byFailure: { DeliveryUnknown: 2 }, unknownDeliveries: 2 },
  ],
  ['missing', { evidence: null, delivery: null }, { byFailure: { missing: 2 } }],
])('the board counts two items with the outcome %s and the fields %j', (outcome, fields, counts) => {
  const recorded = { ...ITEM_RESULT, ...fields, outcome } as RecordedOutcome;
  const counted = withOutcome(withOutcome(EMPTY_BOARD, 'v', recorded), 'w', recorded);
  expect({ ...counted, firstFailures: [] }).toEqual({ ...EMPTY_BOARD, ended: 2, ...counts });
});

it('the board lists the first 20 failures, whether the job failed or the follow-up ended without a job', () => {
  const many = (outcome: Outcome) => Array<Outcome>(18).fill(outcome);
  const outcomes = ['completed', 'archived', ...many('failed'), ...many('missing')];
  const { firstFailures } = outcomes.reduce<BatchBoard>(
    (board, outcome, nth) => withOutcome(board, `w-${nth}`, { ...ITEM_RESULT, outcome } as RecordedOutcome),
    EMPTY_BOARD,
  );
  const named = outcomes.map((outcome, nth) => ({ workflowId: `w-${nth}`, outcome, message: null }));
  expect(firstFailures).toEqual(named.slice(2, 22));
});

it('maxFailures is a number of items or an exact percentage of all items; null does not limit the failures', () => {
  const isBeyond = (maxFailures: BatchMemo['maxFailures'], items: number, missing: number) => {
    // The failed job counts as a failure.
    const byStatus = { completed: 7, archived: 5, failed: 1 };
    return isMaxFailuresExceeded({ maxFailures, items }, { ...EMPTY_BOARD, ended: 13 + missing, byStatus });
  };
  const isLimit = (maxFailures: BatchMemo['maxFailures'], items: number, failures: number) =>
    !isBeyond(maxFailures, items, failures - 1) && isBeyond(maxFailures, items, failures);
  expect(isLimit({ items: 3 }, 50, 3)).toBe(true);
  expect(isLimit({ percent: 2.5 }, 50, 1)).toBe(true);
  for (let percent = 1; percent <= 100; percent += 1)
    expect(isLimit({ percent: percent / 10 }, 100_000, percent * 100)).toBe(true);
  expect(isBeyond(null, 50, 49)).toBe(false);
});
