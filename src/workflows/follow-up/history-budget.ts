import type { WorkflowInfo } from '@temporalio/workflow';

type HistorySize = Pick<WorkflowInfo, 'historyLength' | 'historySize'>;

const MIB = 1_024 * 1_024;

/** Waits are stretched from here on. Only a follow-up whose message is not delivered gets this far: it must not continue as new. */
const BUDGET_FROM_EVENTS = 10_000;
const BUDGET_FROM_BYTES = 10 * MIB;

/** The server ends a workflow at 51,200 events or 50 MiB. */
const MAX_EVENTS = 40_000;
const MAX_BYTES = 40 * MIB;

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
  const events = Math.min(MAX_EVENTS - historyLength, eventsByBytes);
  return Math.ceil(untilDeadlineMs / Math.max(1, events / EVENTS_PER_READ));
}

/** Why the history has no room for a read or a POST that an operator wants at once; undefined while it has. */
export function noRoomFor(
  step: 'read' | 'send',
  size: HistorySize,
  untilDeadlineMs: number,
): string | undefined {
  const { historyLength, historySize } = size;
  const words = `the history has ${historyLength} events and ${Math.round(historySize / MIB)} MiB`;
  const isFull = historyLength >= MAX_EVENTS || historySize >= MAX_BYTES;
  if (step === 'send') return isFull ? `${words}; there is no room for another POST` : undefined;
  const isShort = historyBudgetWait(size, untilDeadlineMs) === 0;
  return isShort ? undefined : `${words}, and must last until the deadline; the next read comes by itself`;
}
