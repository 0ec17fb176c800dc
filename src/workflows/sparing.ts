/**
 * Below so many events nothing is spared. Continue-as-new is suggested at 4,096, so that only a follow-up that may not
 * continue as new, because its message isn't delivered yet, comes so far.
 */
const SPARE_FROM_EVENTS = 10_000;

/** The server ends a workflow at 51,200 events (Temporal's documentation, "Workflow Execution limits"). */
const MAX_EVENTS = 40_000;

/** A wait, a read and the workflow tasks between (measured: 11). */
const EVENTS_PER_READ = 12;

/**
 * The shortest wait, in milliseconds, with which a history that has grown long still reaches the deadline: a follow-up
 * that waits for weeks before its send must not be ended by the size of its history.
 */
export function sparingWait(historyLength: number, untilDeadlineMs: number): number {
  if (historyLength < SPARE_FROM_EVENTS) return 0;
  const readsLeft = Math.max(1, (MAX_EVENTS - historyLength) / EVENTS_PER_READ);
  return Math.ceil(untilDeadlineMs / readsLeft);
}
