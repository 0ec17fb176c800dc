import type { WorkflowInfo } from '@temporalio/workflow';

type HistorySize = Pick<WorkflowInfo, 'historyLength' | 'historySize'>;

const MIB = 1_024 * 1_024;

/** Waits are stretched from here on. Only a follow-up whose message is not delivered gets this far: it must not continue as new. */
const BUDGET_FROM_EVENTS = 10_000;
const BUDGET_FROM_BYTES = 10 * MIB;

/** The server ends a workflow at 51,200 events or 50 MiB. */
const MAX_EVENTS = 40_000;
const MAX_BYTES = 40 * MIB;

/** No room for another POST, which records the message again. */
export function isFull({ historyLength, historySize }: HistorySize): boolean {
  return historyLength >= MAX_EVENTS || historySize >= MAX_BYTES;
}

/** A wait, a read and the workflow tasks between (measured: 11). */
const EVENTS_PER_READ = 12;

/**
 * The shortest wait, in milliseconds, with which a history that has grown long still reaches the deadline, with events as large
 * as those that are there: each try to send records the message again.
 */
export function historyBudgetWait(
  { historyLength, historySize }: HistorySize,
  untilDeadlineMs: number,
): number {
  if (historyLength < BUDGET_FROM_EVENTS && historySize < BUDGET_FROM_BYTES) return 0;
  const eventsByBytes = (MAX_BYTES - historySize) / (historySize / historyLength);
  const eventsLeft = Math.min(MAX_EVENTS - historyLength, eventsByBytes);
  const readsLeft = Math.max(1, eventsLeft / EVENTS_PER_READ);
  return Math.ceil(untilDeadlineMs / readsLeft);
}
