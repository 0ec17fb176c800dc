/** The length of a history in events, and its size in bytes. */
export interface HistorySize {
  readonly historyLength: number;
  readonly historySize: number;
}

/** The share of a history that is used up. The Temporal server ends a workflow at 51,200 events or 50 MiB. */
function usedShare({ historyLength, historySize }: HistorySize): number {
  return Math.max(historyLength / 40_000, historySize / (40 * 1_024 * 1_024));
}

/** Whether the history has no room for another send, which records the message again. */
export function isHistoryFull(history: HistorySize): boolean {
  return usedShare(history) >= 1;
}

/** Waits become longer from this share on. Only a follow-up whose message is not delivered gets so far, because it can't continue as new. */
const LONG_HISTORY = 1 / 4;

/** A timer, a read activity and the workflow tasks between them take 11 events (test/workflows/replay/budget.test.ts). */
const EVENTS_PER_READ = 12;

/**
 * The shortest wait in milliseconds with which a long history still lasts until the deadline, if its next events are as large as
 * its events so far. It is 0 for a short history.
 */
export function minWaitForHistoryMs(history: HistorySize, untilDeadlineMs: number): number {
  const share = usedShare(history);
  if (share < LONG_HISTORY) return 0;
  const eventsLeft = history.historyLength * (1 / share - 1);
  return Math.ceil(untilDeadlineMs / Math.max(1, eventsLeft / EVENTS_PER_READ));
}
