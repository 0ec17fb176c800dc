import type { Tolerance } from '../../contract/batch';
import { formatDuration } from '../../contract/duration';
import { itemsDigest } from '../batch/identity';
import type { ScheduleDefinition } from './definition';
import type { ScheduleSettings } from './settings';
import { timingText } from './timing';

/** One thing in which two schedules differ, in words. */
export interface Difference {
  readonly what: string;
  readonly before: string;
  readonly after: string;
}

/** What differs between two schedules; empty for the same. */
export function differences(before: ScheduleDefinition, after: ScheduleDefinition): Difference[] {
  const rows = settingRows(after.settings);
  const settings = settingRows(before.settings).map(([what, value], index) => {
    return { what, before: value, after: rows[index]?.[1] ?? '' };
  });
  const items = { what: 'items', before: itemWords(before), after: itemWords(after) };
  return [...settings, items].filter((each) => each.before !== each.after);
}

/** The items in a few words, that are others for other items. */
function itemWords({ items }: ScheduleDefinition): string {
  return `${items.length} (${itemsDigest(items).slice(0, 8)})`;
}

/** The settings in words, always in the same order. */
export function settingRows(settings: ScheduleSettings): [string, string][] {
  const { jitterMs, catchupWindowMs, pauseOnFailure } = settings;
  return [
    ['timing', settings.timing.map(timingText).join(' + ') || 'never'],
    ['timezone', settings.timezone],
    ['start', settings.startAt ?? 'at once'],
    ['end', settings.endAt ?? 'never'],
    ['jitter', jitterMs === 0 ? 'none' : `up to ${formatDuration(jitterMs)}`],
    ['overlap', settings.overlap],
    ['catch-up window', formatDuration(catchupWindowMs)],
    ['pause on failure', pauseOnFailure ? 'yes' : 'no'],
    ['concurrency', String(settings.concurrency)],
    ['tolerance', toleranceText(settings.tolerate)],
    ['task queue', settings.taskQueue],
  ];
}

export function toleranceText(tolerate: Tolerance): string {
  if (tolerate === null) return 'any number of failures';
  return 'items' in tolerate ? `${tolerate.items} failures` : `${tolerate.percent}% failures`;
}
