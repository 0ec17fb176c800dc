import type { WorkflowInfo } from '@temporalio/workflow';

type HistorySize = Pick<WorkflowInfo, 'historyLength' | 'historySize'>;

/** The share that is used up. The server ends a workflow at 51,200 events or 50 MiB. */
function used({ historyLength, historySize }: HistorySize): number {
  return Math.max(historyLength / 40_000, historySize / (40 * 1_024 * 1_024));
}

/** No room for another POST, which records the message again. */
export function isFull(history: HistorySize): boolean {
  return used(history) >= 1;
}

/** Waits are stretched from here on. Only a follow-up whose message is not delivered gets this far: it must not continue as new. */
const STRETCHED_FROM = 1 / 4;

/** A wait, a read and the workflow tasks between (measured: 11). */
const EVENTS_PER_READ = 12;

/**
 * The shortest wait, in milliseconds, with which a history that has grown long still reaches the deadline, with events as large
 * as those that are there: each try to send records the message again.
 */
export function historyBudgetWait(history: HistorySize, untilDeadlineMs: number): number {
  const share = used(history);
  if (share < STRETCHED_FROM) return 0;
  const eventsLeft = history.historyLength * (1 / share - 1);
  const readsLeft = Math.max(1, eventsLeft / EVENTS_PER_READ);
  return Math.ceil(untilDeadlineMs / readsLeft);
}
