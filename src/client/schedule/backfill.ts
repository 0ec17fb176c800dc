import type { Client } from '@temporalio/client';
import { msNumberToTs, tsToDate } from '@temporalio/common/lib/time';
import { findSchedule } from './find-schedule';
import { parseInstant } from './instant';
import { type Overlap, policyOf } from './overlap';
import { overlapProblems, refuse } from './problems';

/** What a backfill asks for. */
export interface Backfilled {
  /** The times in the range at which the schedule would have fired. */
  readonly times: readonly string[];
  readonly overlap: Overlap;
}

/** Times of one backfill: the server buffers no more (source: server 1.31, scheduler's `MaxBufferSize`). */
const MAX_TIMES = 1_000;

/** @throws InvalidScheduleError, ScheduleNotFoundError */
export async function backfillSchedule(
  client: Client,
  scheduleId: string,
  from: string,
  to: string,
  overlap: Overlap,
): Promise<Backfilled> {
  const { start, end } = range(from, to, overlap);
  await findSchedule(client, scheduleId);
  const { startTime } = await client.workflowService.listScheduleMatchingTimes({
    namespace: client.options.namespace,
    scheduleId,
    // It leaves out the beginning of the range, unlike the backfill itself (measured, server 1.31.2).
    startTime: msNumberToTs(start.getTime() - 1),
    endTime: msNumberToTs(end.getTime()),
  });
  const times = startTime.map((time) => tsToDate(time).toISOString());
  if (times.length === 0) refuse(['from, to: the schedule has no time between them']);
  if (times.length > MAX_TIMES)
    refuse([
      `from, to: the schedule has ${times.length} times between them; at most ${MAX_TIMES} are possible`,
    ]);
  await client.schedule.getHandle(scheduleId).backfill({ start, end, overlap: policyOf(overlap) });
  return { times, overlap };
}

function range(from: string, to: string, overlap: string): { readonly start: Date; readonly end: Date } {
  const start = parseInstant(from);
  const end = parseInstant(to);
  const problems = overlapProblems(overlap);
  if ('problem' in start) problems.push(`from: ${start.problem}`);
  if ('problem' in end) problems.push(`to: ${end.problem}`);
  if ('at' in start && 'at' in end && start.at > end.at) problems.push('to: must not be before from');
  refuse(problems);
  return { start: 'at' in start ? start.at : new Date(NaN), end: 'at' in end ? end.at : new Date(NaN) };
}
