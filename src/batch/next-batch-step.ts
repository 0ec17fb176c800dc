import { type BatchBoard, isMaxFailuresExceeded, isEveryLanePending } from './board';
import type { BatchMemo } from './memo';
import type { Lane } from './started-items';

/** The next thing that the activity of a batch does. */
export type BatchStep =
  /** Adds so many lanes from the cursor on, and checks which of their items earlier runs started. */
  | { readonly do: 'add lanes'; readonly count: number }
  /** Starts the next items of these lanes with one send permission. */
  | { readonly do: 'start'; readonly lanes: readonly Lane[] }
  /** Cancels every running follow-up of the batch, and then waits for the next round. */
  | { readonly do: 'cancel items'; readonly waitMs: number }
  | { readonly do: 'next round'; readonly waitMs: number }
  /** Returns the board to the workflow, which decides and writes it to the memo. */
  | { readonly do: 'report' };

/** The follow-ups that run, and the times of the round. */
export interface RunningItems {
  /** The number of follow-ups that count against the concurrency. */
  readonly count: number;
  /** The ends of the lanes that must wait, because a follow-up of their job runs. */
  readonly busyLanes: ReadonlySet<number>;
  /** The board changed in this round. */
  readonly hasChanged: boolean;
  /** The round has lasted long enough: it starts no further item. */
  readonly isRoundOver: boolean;
  /** By the Temporal server's clock, in milliseconds since the epoch. */
  readonly now: number;
  readonly activityStartedAt: number;
}

/** The number of items that start with one send permission. */
export const GROUP_SIZE = 10;

/** Between rounds: while items end, and while nothing happens. A caller who watches sees an outcome within ten seconds. */
const BUSY_WAIT_MS = 1_000;
const UNCHANGED_WAIT_MS = 5_000;

/** For so long after an item ended quickly, rounds follow each other as while items end. */
const QUICK_WINDOW_MS = 20_000;

/** The first reports come soon, because callers watch a batch that they have just started. Later ones come every minute. */
const FIRST_REPORT_MS = 2_000;
const REPORT_MS = 60_000;

/** Decides the next step. For every board, there is exactly one. */
export function nextBatchStep(board: BatchBoard, settings: BatchMemo, running: RunningItems): BatchStep {
  const { stopReason, startLimit, items, concurrency } = settings;
  const waitMs = nextRoundWaitMs(board, running);
  if (stopReason === 'cancel-running')
    return running.count === 0 ? { do: 'report' } : { do: 'cancel items', waitMs };
  const isBeyond = stopReason === null && isMaxFailuresExceeded(settings, board);
  if (board.ended >= items || stopReason === 'cancelled' || isBeyond) return { do: 'report' };
  if (settings.isPaused || stopReason !== null)
    return isEveryLanePending(board) || isReportDue(board, settings, running)
      ? { do: 'report' }
      : { do: 'next round', waitMs };
  if (!running.isRoundOver) {
    const free = concurrency - running.count;
    const pending = board.lanes.filter(({ state }) => state === 'pending');
    const count = free - pending.length;
    if (count > 0 && board.cursor < startLimit) return { do: 'add lanes', count };
    const ready = pending.filter(({ next, end }) => next < startLimit && !running.busyLanes.has(end));
    const lanes = ready.slice(0, Math.max(0, Math.min(GROUP_SIZE, free)));
    if (lanes.length > 0) return { do: 'start', lanes };
  }
  // The workflow must write a further bound to the memo before items beyond the bound may start.
  const needsBound = board.cursor >= startLimit && startLimit < items;
  return needsBound || isReportDue(board, settings, running)
    ? { do: 'report' }
    : { do: 'next round', waitMs };
}

function nextRoundWaitMs({ quickEndAt, blockedItem }: BatchBoard, { now, hasChanged }: RunningItems): number {
  const isQuick = now - quickEndAt < QUICK_WINDOW_MS;
  return isQuick || (hasChanged && blockedItem === null) ? BUSY_WAIT_MS : UNCHANGED_WAIT_MS;
}

function isReportDue(
  { cursor, ended }: BatchBoard,
  memo: BatchMemo,
  { now, activityStartedAt }: RunningItems,
): boolean {
  // A report costs seven events. Ten reports are free, and the others add at most two events per item.
  const isAffordable = 7 * (memo.rounds - 10) <= 2 * ended;
  const hasNews = cursor !== memo.cursor || ended !== memo.ended;
  const dueMs = Math.min(FIRST_REPORT_MS * 2 ** memo.rounds, REPORT_MS);
  return hasNews && isAffordable && now - activityStartedAt > dueMs;
}
