import { type EventBody, type HistoryEvent, isByCommand, type ServerCommand } from './history';

/** Whether an event waits that a workflow must hear of before it may end. A timer that it cancels has not fired for it. */
export function mustHearOf(waiting: readonly EventBody[], commands: readonly ServerCommand[]): boolean {
  const isCancelled = (seq: number) =>
    commands.some((command) => command.type === 'TimerCanceled' && command.seq === seq);
  return waiting.some((body) => body.type !== 'TimerFired' || !isCancelled(body.seq));
}

/** Whether something has happened since the latest task began. */
export function hasNews(events: readonly HistoryEvent[]): boolean {
  const last = events.findLastIndex(({ type }) => type === 'WorkflowTaskStarted');
  return events
    .slice(last + 1)
    .some((event) => !isByCommand(event) && event.type !== 'WorkflowTaskCompleted');
}

/** A task that had nothing but updates, all of which were refused. */
export function leavesNoTrace(events: readonly HistoryEvent[], commands: readonly ServerCommand[]): boolean {
  if (commands.length === 0 || !commands.every(({ type }) => type === 'UpdateRejected')) return false;
  const [before] = events.slice(-3);
  return before?.type === 'WorkflowTaskCompleted' || (before !== undefined && isByCommand(before));
}
