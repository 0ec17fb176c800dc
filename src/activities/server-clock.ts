import { Context } from '@temporalio/activity';

/**
 * The server's clock, as far as the attempt at hand can know it: the time now is what it returns, or later. Clocks of two
 * workers may differ by minutes, so it counts from the moment at which the server has scheduled the attempt, by the
 * process's monotonic clock. It is late by the time that the task has waited in its queue.
 */
export function serverClock(): () => number {
  const { currentAttemptScheduledTimestampMs } = Context.current().info;
  const begunAt = performance.now();
  return () => Math.round(currentAttemptScheduledTimestampMs + performance.now() - begunAt);
}
