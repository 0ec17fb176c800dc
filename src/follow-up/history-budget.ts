/** The length of a history in events, and its size in bytes. */
export interface HistorySize {
  readonly historyLength: number;
  readonly historySize: number;
}

/**
 * Returns the used share of a history, with a reserve. The Temporal server terminates a workflow at 51,200 events or 50 MiB, and
 * the share is 1 at 40,000 events or 40 MiB.
 */
function usedShare({ historyLength, historySize }: HistorySize): number {
  return Math.max(historyLength / 40_000, historySize / (40 * 1_024 * 1_024));
}

/** Returns whether the history has no room for another send. Each send records the message again. */
export function isHistoryFull(history: HistorySize): boolean {
  return usedShare(history) >= 1;
}

/**
 * The used share from which on waits become longer. Only a follow-up whose message is not delivered reaches this share, because it
 * can't continue as new.
 */
const LONG_HISTORY = 1 / 4;

/**
 * A timer, a read activity and the workflow tasks between them take 11 events (measured by test/workflows/replay/budget.test.ts).
 * The twelfth event is a reserve.
 */
const EVENTS_PER_READ = 12;

/**
 * Returns the shortest wait in milliseconds with which a long history lasts until the deadline. The function assumes that the next
 * events are as large as the events so far. For a short history, the result is 0.
 *
 * @param untilDeadlineMs the time until the deadline, in milliseconds
 */
export function minWaitForHistoryMs(history: HistorySize, untilDeadlineMs: number): number {
  const share = usedShare(history);
  if (share < LONG_HISTORY) return 0;
  const eventsLeft = history.historyLength * (1 / share - 1);
  return Math.ceil(untilDeadlineMs / Math.max(1, eventsLeft / EVENTS_PER_READ));
}
