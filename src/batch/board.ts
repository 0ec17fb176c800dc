import { type Checked, count, objectOf, listOf, mapOf, orNull, text, time } from '../contract/checks';
import {
  type RecordedOutcome,
  recordedOutcomeFields,
  createOutcomeWithoutReceipt,
  isFailure,
  shouldRetry,
} from '../contract/outcome';
import { isTerminal } from '../contract/job';
import { addCounts } from '../contract/response-counts';
import type { BatchSettings } from './memo';
import { isStartedItems, type Lane, startedFields, isCertainlyStarted } from './started-items';

const countFields = {
  ended: count,
  byStatus: mapOf(count),
  byFailure: mapOf(count),
  byEvidence: mapOf(count),
  unknownDeliveries: count,
  firstFailures: listOf(
    objectOf({
      workflowId: text,
      outcome: recordedOutcomeFields.outcome,
      message: recordedOutcomeFields.message,
    }),
  ),
};

/** The names of the fields that count ended items. */
export const COUNTS = Object.keys(countFields) as (keyof typeof countFields)[];

const boardFields = {
  ...startedFields,
  ...countFields,
  /** The number of running follow-ups in the latest round. */
  open: count,
  /** The items that earlier runs of the batch started. */
  startedEarlier: orNull(isStartedItems),
  /**
   * When the latest item that took at most `QUICK_ITEM_MS` ended, in milliseconds since the epoch. The value is 0 before the
   * first such item.
   */
  quickEndAt: time,
  /** The item that can't proceed, and the reason. The value is null if every item can proceed. */
  blockedItem: orNull(objectOf({ workflowId: text, reason: text })),
};

export const BOARD_FIELDS = Object.keys(boardFields) as (keyof typeof boardFields)[];

/**
 * The board of a batch: the started items and the counts of outcomes. A board is immutable. The functions below return a new board,
 * or the same board if nothing changed.
 */
export const isBatchBoard = objectOf(boardFields);
export type BatchBoard = Checked<typeof isBatchBoard>;

export const EMPTY_BOARD: BatchBoard = {
  ...{ cursor: 0, lanes: [], startedEarlier: null, open: 0, quickEndAt: 0, blockedItem: null },
  ...{ ended: 0, byStatus: {}, byFailure: {}, byEvidence: {}, unknownDeliveries: 0, firstFailures: [] },
};

/** The maximum duration of an item that counts as quick. After a quick item, the next round follows soon. */
const QUICK_ITEM_MS = 10_000;

/** A fact that the Temporal server reports about one item. */
export type ItemFact = { readonly workflowId: string } & (
  | { readonly kind: 'running'; readonly isStartedByBatch: boolean }
  /** The follow-up has ended, and its outcome can't be read at the moment. */
  | { readonly kind: 'unreadable'; readonly reason: string }
  | {
      readonly kind: 'ended';
      /** The outcome of the follow-up. The outcome is `missing` if the follow-up does not exist. */
      readonly outcome: RecordedOutcome;
      readonly runId?: string | undefined;
      /**
       * When the latest run started and ended, in milliseconds since the epoch. Both are undefined if the follow-up does not
       * exist.
       */
      readonly startedAt?: number | undefined;
      readonly closedAt?: number | undefined;
      /** Whether the Temporal server rejects a further run of the follow-up. @default false */
      readonly isFinal?: boolean;
    }
);

type Settings = Pick<BatchSettings, 'stopReason' | 'retryScope' | 'startedAt'>;

/**
 * Returns whether the next item of a lane may have been started. If so, the item's state must be read from the Temporal server.
 */
export function isPossiblyStarted({ startedEarlier }: BatchBoard, { next, state }: Lane): boolean {
  return state !== 'pending' || isCertainlyStarted(startedEarlier, next);
}

/**
 * Applies a fact about the next item of a lane.
 *
 * @returns the lane after the fact, and the item's outcome, which is null if the item has not ended
 */
export function advanceLane(
  lane: Lane,
  fact: ItemFact,
  settings: Settings,
): { readonly lane: Lane; readonly outcome: RecordedOutcome | null } {
  const { next, end, state } = lane;
  const isCancelled = settings.stopReason === 'cancel-running';
  const completeItem = (outcome: RecordedOutcome) =>
    ({ lane: { next: next + 1, end, state: 'pending' }, outcome }) as const;
  if (fact.kind === 'running' && isCancelled && !fact.isStartedByBatch)
    return completeItem(createOutcomeWithoutReceipt('left-running'));
  if (fact.kind !== 'ended') return { lane: { next, end, state: 'running' }, outcome: null };
  const { outcome, isFinal = false, runId, startedAt } = fact;
  const pending = { next, end, state: 'pending' } as const;
  if (outcome.outcome === 'missing' && state === 'starting') return { lane: pending, outcome: null };
  if (isFinal || !shouldRetry(outcome, settings.retryScope)) return completeItem(outcome);
  // A retry gives each follow-up one more run. A run that started after the retry of the batch started is this additional run.
  const runStartedAt = startedAt ?? (state === 'pending' ? 0 : Infinity);
  if (runStartedAt >= Date.parse(settings.startedAt)) return completeItem(outcome);
  return { lane: { ...pending, retriedRunId: runId }, outcome: null };
}

/** Applies facts about items to every lane. @param facts by the number of the item */
export function applyFacts(
  board: BatchBoard,
  settings: Settings,
  facts: ReadonlyMap<number, ItemFact>,
): BatchBoard {
  let currentBoard = board;
  const lanes = board.lanes.map((lane) => {
    let currentLane = lane;
    for (let fact = facts.get(currentLane.next); fact !== undefined; fact = facts.get(currentLane.next)) {
      const change = advanceLane(currentLane, fact, settings);
      const isUnchanged =
        change.lane.state === currentLane.state && change.lane.retriedRunId === currentLane.retriedRunId;
      if (change.outcome === null) return isUnchanged ? currentLane : change.lane;
      currentBoard = withQuickEnd(
        withOutcome(currentBoard, fact.workflowId, change.outcome),
        currentLane,
        fact,
      );
      currentLane = change.lane;
      if (currentLane.next >= currentLane.end) break;
    }
    return currentLane;
  });
  return lanes.every((lane, index) => lane === board.lanes[index])
    ? board
    : { ...currentBoard, lanes: lanes.filter(({ next, end }) => next < end) };
}

/** Records an item of this run that ended quickly, so that the next round follows soon. */
function withQuickEnd(board: BatchBoard, { state }: Lane, fact: ItemFact): BatchBoard {
  if (fact.kind !== 'ended' || state === 'pending') return board;
  const { startedAt = 0, closedAt = 0 } = fact;
  return closedAt - startedAt > QUICK_ITEM_MS
    ? board
    : { ...board, quickEndAt: Math.max(board.quickEndAt, closedAt) };
}

const MAX_FIRST_FAILURES = 20;

/** Counts the outcome of an item that ended. */
export function withOutcome(
  board: BatchBoard,
  workflowId: string,
  recordedOutcome: RecordedOutcome,
): BatchBoard {
  const { outcome, evidence, delivery, message } = recordedOutcome;
  const { byEvidence, firstFailures } = board;
  const isNamed = isFailure(recordedOutcome) && firstFailures.length < MAX_FIRST_FAILURES;
  const by = isTerminal(outcome) ? 'byStatus' : 'byFailure';
  return {
    ...board,
    ended: board.ended + 1,
    [by]: addCounts(board[by], { [outcome]: 1 }),
    byEvidence: evidence === null ? byEvidence : addCounts(byEvidence, { [evidence]: 1 }),
    unknownDeliveries: board.unknownDeliveries + (delivery === 'unknown' ? 1 : 0),
    firstFailures: isNamed ? [...firstFailures, { workflowId, outcome, message }] : firstFailures,
  };
}

/** Adds lanes from the cursor on. @param ends for each new lane, the number after its last item */
export function addLanes(board: BatchBoard, ends: readonly number[]): BatchBoard {
  const firsts = [board.cursor, ...ends];
  const added = ends.map((end, index) => ({ next: firsts[index] ?? end, end, state: 'pending' }) as const);
  return { ...board, lanes: [...board.lanes, ...added], cursor: firsts.at(-1) ?? board.cursor };
}

/** Marks the next items of these lanes as `starting`. A marked item may be started at any time. */
export function markStarting(board: BatchBoard, starting: readonly Lane[]): BatchBoard {
  const lanes = board.lanes.map((lane): Lane =>
    starting.includes(lane) ? { ...lane, state: 'starting' } : lane,
  );
  return { ...board, lanes };
}

/** Sets the facts that a round reports in addition to the items' outcomes. */
export function withRound(
  board: BatchBoard,
  { open, blockedItem }: Pick<BatchBoard, 'open' | 'blockedItem'>,
): BatchBoard {
  const isSame =
    board.blockedItem?.workflowId === blockedItem?.workflowId &&
    board.blockedItem?.reason === blockedItem?.reason;
  return board.open === open && isSame ? board : { ...board, open, blockedItem };
}

export function isEveryLanePending({ lanes }: Pick<BatchBoard, 'lanes'>): boolean {
  return lanes.every(({ state }) => state === 'pending');
}

/** Returns the number of items that ended as failures, see {@link isFailure}. */
export function countFailures({ ended, byStatus }: BatchBoard): number {
  return ended - (byStatus.completed ?? 0) - (byStatus.archived ?? 0);
}

export function isMaxFailuresExceeded(
  { maxFailures, items }: Pick<BatchSettings, 'maxFailures' | 'items'>,
  board: BatchBoard,
): boolean {
  if (maxFailures === null) return false;
  // The small addition is needed, because 29% of 100 is less than 29 in floating point.
  const maximum = 'items' in maxFailures ? maxFailures.items : (maxFailures.percent * items) / 100 + 1e-6;
  return countFailures(board) > maximum;
}
