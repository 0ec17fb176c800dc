import { type Firing, type ListedSchedule, type ScheduleDescription } from '../../client';
import { settingRows } from '../../client/schedules/settings';
import { timingText } from '../../client/schedules/timing';
import { columns, table } from './text';

/** A list of schedules. */
export function scheduleTable(schedules: readonly ListedSchedule[]): string {
  return table(
    ['SCHEDULE', 'STATE', 'FIRES', 'NEXT', 'LAST', 'ITS END'],
    schedules.map(({ scheduleId, paused, timing, timezone, next, last }) => [
      scheduleId,
      paused ? 'paused' : 'active',
      `${timing.map(timingText).join(' + ') || 'never'}${timezone === 'UTC' ? '' : ` (${timezone})`}`,
      next[0] === undefined ? '-' : seconds(next[0]),
      last === null ? '-' : seconds(last.scheduledAt),
      last === null ? '-' : endText(last),
    ]),
  );
}

/** A schedule, when it fires next, and how its last firings ended. */
export function scheduleText(schedule: ScheduleDescription): string {
  const { scheduleId, paused, note, settings, items, next, recent, running, counts } = schedule;
  const [timing = ['timing', ''] as const, ...others] = settingRows(settings);
  const rows: (readonly [string, string])[] = [
    ['schedule', scheduleId],
    ['state', paused ? 'paused' : 'active'],
    ...(note === null ? [] : [['note', note] as const]),
    timing,
    ['next', next.length === 0 ? 'none' : next.slice(0, SHOWN_NEXT).map(seconds).join(', ')],
    ['items', itemsText(items)],
    ...others,
    ['created', schedule.createdAt],
    ...(schedule.updatedAt === null ? [] : [['updated', schedule.updatedAt] as const]),
    ['fired', `${counts.started} started, ${counts.skipped} skipped, ${counts.missed} missed`],
    ...(running.length === 0 ? [] : [['running', running.join(', ')] as const]),
  ];
  if (recent.length === 0) return columns(rows);
  const firings = recent.map((firing) => [seconds(firing.scheduledAt), firing.batchId, endText(firing)]);
  return `${columns(rows)}\n\n${table(['DUE', 'BATCH', 'ITS END'], firings)}`;
}

function itemsText({ count, jobs, projects }: ScheduleDescription['items']): string {
  const some = (number: number, word: string): string => `${number} ${word}${number === 1 ? '' : 's'}`;
  return `${count} to ${some(jobs, 'job')} of ${some(projects, 'project')}`;
}

const SHOWN_NEXT = 3;

/** How a batch of a schedule ended, as one cell. */
function endText({ state, items, settled, failures, message }: Firing): string {
  if (items === null) return state === 'incomplete' && message !== null ? `${state}: ${message}` : state;
  const some = failures === 0 ? 'no failure' : failures === 1 ? '1 failure' : `${failures} failures`;
  return `${state}, ${settled} of ${items} settled, ${some}`;
}

/** A time without milliseconds: schedules fire by the second. */
function seconds(at: string): string {
  return at.slice(0, 19) + 'Z';
}
