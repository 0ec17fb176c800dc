import {
  type CalendarSpec,
  type CalendarSpecDescription,
  DAYS_OF_WEEK,
  type IntervalSpec,
  MONTHS,
  type ScheduleSpecDescription,
} from '@temporalio/client';
import { formatDuration } from '../../contract/duration';
import { type Calendar, calendarText, type Parsed, parseCalendar, parseCron, sameCalendar } from './calendar';
import { type CalendarField, type FieldValues, normal, runsOf } from './calendar-field';

/** One of the rules by which a schedule fires; it fires at the times of all of them together. */
export type Timing =
  | { readonly kind: 'cron'; readonly text: string }
  | { readonly kind: 'calendar'; readonly text: string }
  /** At every multiple of `everyMs` since 1970-01-01T00:00Z, `offsetMs` later. */
  | { readonly kind: 'every'; readonly everyMs: number; readonly offsetMs: number };

/** A rule in words: `cron 0 3 * * MON-FRI`, `every 6h, 30m after`. */
export function timingText(timing: Timing): string {
  if (timing.kind !== 'every') return `${timing.kind} ${timing.text}`;
  const { everyMs, offsetMs } = timing;
  return `every ${formatDuration(everyMs)}${offsetMs === 0 ? '' : `, ${formatDuration(offsetMs)} after`}`;
}

/** What is wrong with a cron expression or a calendar; undefined for a good one. */
export function textProblem(kind: 'cron' | 'calendar', text: string): string | undefined {
  if (text.includes('#'))
    return `${JSON.stringify(text.slice(0, 60))} holds a comment; a schedule has a note`;
  const parsed = parse(kind, text);
  return 'problem' in parsed ? parsed.problem : undefined;
}

/** A rule that was checked, always written the same way. */
export function ruleOf(kind: 'cron' | 'calendar', text: string): Timing {
  const parsed = parse(kind, text);
  const isCalendar = kind === 'calendar' && 'calendar' in parsed;
  return { kind, text: isCalendar ? calendarText(parsed.calendar) : text.trim().replace(/\s+/g, ' ') };
}

/**
 * The rules in Temporal's terms. Cron expressions are compiled here, as the server would do it, and stand in the comment of
 * their calendars, where Temporal's Web UI puts them too, and looks for them.
 */
export function specOf(timings: readonly Timing[]): { calendars: CalendarSpec[]; intervals: IntervalSpec[] } {
  const calendars: CalendarSpec[] = [];
  const intervals: IntervalSpec[] = [];
  for (const timing of timings) {
    if (timing.kind === 'every') intervals.push({ every: timing.everyMs, offset: timing.offsetMs });
    else {
      const parsed = parse(timing.kind, timing.text);
      if ('calendar' in parsed)
        calendars.push(calendarSpec(parsed.calendar, timing.kind === 'cron' ? timing.text : ''));
    }
  }
  return { calendars, intervals };
}

/** The rules of a schedule, whoever made them: as they were given where the comment still tells, else as calendars. */
export function timingsOf({ calendars = [], intervals = [] }: ScheduleSpecDescription): Timing[] {
  return [
    ...calendars.map(timingOfCalendar),
    ...intervals.map(({ every, offset }): Timing => ({
      kind: 'every',
      everyMs: every,
      offsetMs: (offset as number | undefined) ?? NO_OFFSET_MS,
    })),
  ];
}

/** The server leaves out what is zero, and the SDK's type doesn't tell. */
const NO_OFFSET_MS = 0;

function timingOfCalendar(spec: CalendarSpecDescription): Timing {
  const calendar = calendarOfSpec(spec);
  const text = spec.comment ?? '';
  const parsed = parseCron(text);
  // Somebody may have changed the calendar and left the comment.
  if ('calendar' in parsed && sameCalendar(parsed.calendar, calendar)) return { kind: 'cron', text };
  return { kind: 'calendar', text: calendarText(calendar) };
}

function parse(kind: 'cron' | 'calendar', text: string): Parsed {
  return kind === 'cron' ? parseCron(text) : parseCalendar(text);
}

function calendarSpec(calendar: Calendar, comment: string): CalendarSpec {
  const numbers = (field: CalendarField) => ranges(calendar[field], (value) => value);
  return {
    second: numbers('second'),
    minute: numbers('minute'),
    hour: numbers('hour'),
    dayOfMonth: numbers('dayOfMonth'),
    month: ranges(calendar.month, (value) => MONTHS[value - 1] ?? 'JANUARY'),
    year: numbers('year'),
    dayOfWeek: ranges(calendar.dayOfWeek, (value) => DAYS_OF_WEEK[value] ?? 'SUNDAY'),
    comment,
  };
}

function ranges<Unit>(values: FieldValues, unit: (value: number) => Unit) {
  if (values === '*') return '*';
  return runsOf(values).map(([first, last]) => ({ start: unit(first), end: unit(last), step: 1 }));
}

function calendarOfSpec(spec: CalendarSpecDescription): Calendar {
  const numbers = (field: Exclude<CalendarField, 'month' | 'dayOfWeek'>): FieldValues =>
    valuesOf(field, spec[field], (value) => value);
  return {
    second: numbers('second'),
    minute: numbers('minute'),
    hour: numbers('hour'),
    dayOfMonth: numbers('dayOfMonth'),
    month: valuesOf('month', spec.month, (name) => MONTHS.indexOf(name) + 1),
    dayOfWeek: valuesOf('dayOfWeek', spec.dayOfWeek, (name) => DAYS_OF_WEEK.indexOf(name)),
    year: numbers('year'),
  };
}

function valuesOf<Unit>(
  field: CalendarField,
  given: readonly { readonly start: Unit; readonly end: Unit; readonly step: number }[],
  numberOf: (value: Unit) => number,
): FieldValues {
  // Temporal writes all years as none.
  if (given.length === 0) return '*';
  const values = new Set<number>();
  for (const { start, end, step } of given) {
    for (let value = numberOf(start); value <= numberOf(end); value += step) values.add(value);
  }
  return normal(field, [...values]);
}
