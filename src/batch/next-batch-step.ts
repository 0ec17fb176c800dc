import { type BatchBoard, isMaxFailuresExceeded, isEveryLanePending } from './board';
import type { BatchMemo } from './memo';
import type { Lane } from './started-items';

/** The next action of a batch's activity. */
export type BatchStep =
  /** Adds `count` lanes from the cursor on, and checks which of their items earlier runs started. */
  | { readonly do: 'add lanes'; readonly count: number }
  /** Starts the next items of these lanes with one send permission. */
  | { readonly do: 'start'; readonly lanes: readonly Lane[] }
  /** Cancels every running follow-up of the batch, and then waits for the next round. */
  | { readonly do: 'cancel items'; readonly waitMs: number }
  /** Waits for the next round. */
  | { readonly do: 'next round'; readonly waitMs: number }
  /** Returns the board to the workflow, which decides and writes it to the memo. */
  | { readonly do: 'report' };

/** The values on which a decision depends in addition to the board and the memo. */
export interface RoundContext {
  /** The number of follow-ups that count against the concurrency. */
  readonly count: number;
  /**
   * The lanes that must wait, because a follow-up of their job runs. Each of these follow-ups is included in `count`, so there are
   * at most `count` such lanes. The values are the fields `end` of the lanes.
   */
  readonly busyLanes: ReadonlySet<number>;
  /** Whether the board changed in this round. */
  readonly hasChanged: boolean;
  /** Whether the round has lasted long enough, so that it starts no further items. */
  readonly isStartTimeOver: boolean;
  /** The current time by the Temporal server's clock, in milliseconds since the epoch. */
  readonly now: number;
  readonly activityStartedAt: number;
}

/** The number of items that start with one send permission. */
export const GROUP_SIZE = 10;

/**
 * The waits between rounds while items end, and while nothing changes. With these waits, a caller who watches the batch sees an
 * outcome within ten seconds.
 */
const BUSY_WAIT_MS = 1_000;
const UNCHANGED_WAIT_MS = 5_000;

/** For this time after a quick item has ended, the wait between rounds is {@link BUSY_WAIT_MS}. */
const QUICK_WINDOW_MS = 20_000;

/**
 * The base of the time until a report, and the maximum of this time. The time doubles with each `runItems` activity, from 4 s in
 * the first activity on. The first reports come soon, because callers watch a batch that they have just started.
 */
const REPORT_BASE_MS = 2_000;
const MAX_REPORT_MS = 60_000;

/** Decides the next step of the activity. For every board, there is exactly one step. */
export function nextBatchStep(board: BatchBoard, settings: BatchMemo, round: RoundContext): BatchStep {
  const { stopReason, startLimit, items, concurrency } = settings;
  const waitMs = nextRoundWaitMs(board, round);
  if (stopReason === 'cancel-running')
    return round.count === 0 ? { do: 'report' } : { do: 'cancel items', waitMs };
  const isMaxExceeded = stopReason === null && isMaxFailuresExceeded(settings, board);
  if (board.ended >= items || stopReason === 'cancelled' || isMaxExceeded) return { do: 'report' };
  if (settings.isPaused || stopReason !== null)
    return isEveryLanePending(board) || isReportDue(board, settings, round)
      ? { do: 'report' }
      : { do: 'next round', waitMs };
  if (!round.isStartTimeOver) {
    const free = concurrency - round.count;
    // A running follow-up of a busy lane already counts against the concurrency.
    const startable = board.lanes.filter(
      ({ state, end }) => state === 'pending' && !round.busyLanes.has(end),
    );
    const count = free - startable.length;
    if (count > 0 && board.cursor < startLimit) return { do: 'add lanes', count };
    const ready = startable.filter(({ next }) => next < startLimit);
    const lanes = ready.slice(0, Math.max(0, Math.min(GROUP_SIZE, free)));
    if (lanes.length > 0) return { do: 'start', lanes };
  }
  // The workflow must write a higher start limit to the memo before items beyond the limit may start.
  const isStartLimitReached = board.cursor >= startLimit && startLimit < items;
  return isStartLimitReached || isReportDue(board, settings, round)
    ? { do: 'report' }
    : { do: 'next round', waitMs };
}

function nextRoundWaitMs({ quickEndAt, blockedItem }: BatchBoard, { now, hasChanged }: RoundContext): number {
  const isQuick = now - quickEndAt < QUICK_WINDOW_MS;
  return isQuick || (hasChanged && blockedItem === null) ? BUSY_WAIT_MS : UNCHANGED_WAIT_MS;
}

function isReportDue(
  { cursor, ended }: BatchBoard,
  memo: BatchMemo,
  { now, activityStartedAt }: RoundContext,
): boolean {
  // A report adds seven events. Ten reports are always allowed, and later reports add at most two events per ended item.
  const isAffordable = 7 * (memo.activityCount - 10) <= 2 * ended;
  const hasNews = cursor !== memo.cursor || ended !== memo.ended;
  const dueMs = Math.min(REPORT_BASE_MS * 2 ** memo.activityCount, MAX_REPORT_MS);
  return hasNews && isAffordable && now - activityStartedAt > dueMs;
}
