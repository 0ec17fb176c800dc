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

export const COUNTS = Object.keys(countFields) as (keyof typeof countFields)[];

const boardFields = {
  ...startedFields,
  ...countFields,
  /** The number of follow-ups that run, by the latest round. */
  open: count,
  /** The items that earlier runs of the batch started. */
  startedEarlier: orNull(isStartedItems),
  /** When the latest item ended that took at most `QUICK_ITEM_MS`, in milliseconds since the epoch; 0 if none did. */
  quickEndAt: time,
  /** The item that can't proceed, and the reason. */
  blockedItem: orNull(objectOf({ workflowId: text, reason: text })),
};

export const BOARD_FIELDS = Object.keys(boardFields) as (keyof typeof boardFields)[];

/** How far a batch is. It never changes: the functions below make new boards, and return the same board if nothing changed. */
export const isBatchBoard = objectOf(boardFields);
export type BatchBoard = Checked<typeof isBatchBoard>;

export const EMPTY_BOARD: BatchBoard = {
  ...{ cursor: 0, lanes: [], startedEarlier: null, open: 0, quickEndAt: 0, blockedItem: null },
  ...{ ended: 0, byStatus: {}, byFailure: {}, byEvidence: {}, unknownDeliveries: 0, firstFailures: [] },
};

/** An item of at most this duration ended quickly: the next round follows soon. */
const QUICK_ITEM_MS = 10_000;

/** What the Temporal server reports about one item. */
export type ItemFact = { readonly workflowId: string } & (
  | { readonly kind: 'running'; readonly isStartedByBatch: boolean }
  /** The follow-up has ended, and its outcome can't be read now. */
  | { readonly kind: 'unreadable'; readonly reason: string }
  | {
      readonly kind: 'ended';
      /** `missing` if the follow-up does not exist. */
      readonly outcome: RecordedOutcome;
      readonly runId?: string | undefined;
      /** When its latest run started and ended, in milliseconds since the epoch; undefined if it does not exist. */
      readonly startedAt?: number | undefined;
      readonly closedAt?: number | undefined;
      /** The Temporal server starts no further run of it. */
      readonly isFinal?: boolean;
    }
);

type Settings = Pick<BatchSettings, 'stopReason' | 'retryScope' | 'startedAt'>;

/** Whether the next item of a lane may have been started, so that the Temporal server must be queried. */
export function isPossiblyStarted({ startedEarlier }: BatchBoard, { next, state }: Lane): boolean {
  return state !== 'pending' || isCertainlyStarted(startedEarlier, next);
}

/**
 * The effect of a fact about the next item of a lane.
 *
 * @returns the lane, and the outcome with which the item ends; null if it does not end
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
  // A retry gives each follow-up one more run: a run that started later is that run.
  const runStartedAt = startedAt ?? (state === 'pending' ? 0 : Infinity);
  if (runStartedAt >= Date.parse(settings.startedAt)) return completeItem(outcome);
  return { lane: runId === undefined ? pending : { ...pending, retriedRunId: runId }, outcome: null };
}

/** Applies facts about items, by the numbers of the items, to every lane. */
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

/** An item of this run that ended quickly brings the next round forward. */
function withQuickEnd(board: BatchBoard, { state }: Lane, fact: ItemFact): BatchBoard {
  if (fact.kind !== 'ended' || state === 'pending') return board;
  const { startedAt = 0, closedAt = 0 } = fact;
  return closedAt - startedAt > QUICK_ITEM_MS || closedAt <= board.quickEndAt
    ? board
    : { ...board, quickEndAt: closedAt };
}

const MAX_FIRST_FAILURES = 20;

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

/** @param ends for each new lane, the number after its last item */
export function addLanes(board: BatchBoard, ends: readonly number[]): BatchBoard {
  const firsts = [board.cursor, ...ends];
  const added = ends.map((end, index) => ({ next: firsts[index] ?? end, end, state: 'pending' }) as const);
  return { ...board, lanes: [...board.lanes, ...added], cursor: firsts.at(-1) ?? board.cursor };
}

/** The next items of these lanes may start from now on. */
export function markStarting(board: BatchBoard, starting: readonly Lane[]): BatchBoard {
  const lanes = board.lanes.map((lane): Lane =>
    starting.includes(lane) ? { ...lane, state: 'starting' } : lane,
  );
  return { ...board, lanes };
}

/** What a round reports besides the items' outcomes. */
export function withRound(
  board: BatchBoard,
  { open, blockedItem }: Pick<BatchBoard, 'open' | 'blockedItem'>,
): BatchBoard {
  const isSame =
    board.blockedItem?.workflowId === blockedItem?.workflowId &&
    board.blockedItem?.reason === blockedItem?.reason;
  return board.open === open && isSame ? board : { ...board, open, blockedItem: blockedItem };
}

export function isEveryLanePending({ lanes }: Pick<BatchBoard, 'lanes'>): boolean {
  return lanes.every(({ state }) => state === 'pending');
}

/** The number of items that ended as failures, see {@link isFailure}. */
export function countFailures({ ended, byStatus }: BatchBoard): number {
  return ended - (byStatus.completed ?? 0) - (byStatus.archived ?? 0);
}

export function isMaxFailuresExceeded(
  { maxFailures, items }: Pick<BatchSettings, 'maxFailures' | 'items'>,
  board: BatchBoard,
): boolean {
  if (maxFailures === null) return false;
  // In floating point, 29% of 100 are less than 29.
  const maximum = 'items' in maxFailures ? maxFailures.items : (maxFailures.percent * items) / 100 + 1e-6;
  return countFailures(board) > maximum;
}
