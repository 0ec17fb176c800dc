import type { CalendarSpecDescription, IntervalSpec, ScheduleSpecDescription } from '@temporalio/client';
import { type DurationText, formatDuration, parseDuration } from '../../core/units';
import { isRecord } from '../../core/json';
import { quote } from '../../core/text';

/** When a schedule fires: at the times of all that is given together. */
export interface TimingOptions {
  /**
   * Cron expressions, sent to the server as they are: 5 fields (minute, hour, day of month, month, day of week), 6 with a
   * year, 7 with a second before, or `@daily` and the like.
   */
  readonly cron?: readonly string[];
  /** Calendars as Temporal's API and CLI have them, such as `{ dayOfWeek: 'Fri', hour: '3' }`. */
  readonly calendars?: readonly Calendar[];
  readonly intervals?: readonly Interval[];
}

/** Each field is written as in cron: a value, `*`, a range `a-b`, a step `/n`, or a list with commas. */
export interface Calendar {
  /** @default '0' */
  readonly second?: string;
  /** @default '0' */
  readonly minute?: string;
  /** @default '0' */
  readonly hour?: string;
  /** @default '*' */
  readonly dayOfMonth?: string;
  /** @default '*' */
  readonly month?: string;
  /** @default '*' */
  readonly dayOfWeek?: string;
  /** @default '*' */
  readonly year?: string;
  /** For people; the times do not depend on it. */
  readonly comment?: string;
}

/** Each multiple of `every` since 1970-01-01T00:00Z, `offset` later; whole seconds. */
export interface Interval {
  readonly every: DurationText;
  /** @default '0s' */
  readonly offset?: DurationText;
}

/** A rule by which a schedule fires, as it is shown and compared. */
export type Timing =
  | { readonly kind: 'cron'; readonly text: string }
  /** A calendar that was made elsewhere, as the Temporal CLI takes it. */
  | { readonly kind: 'calendar'; readonly text: string }
  | { readonly kind: 'every'; readonly everyMs: number; readonly offsetMs: number };

/** The fields of a calendar in the order of a cron expression of seven fields, with what each is if it is left out. */
const CALENDAR_DEFAULTS = {
  second: '0',
  minute: '0',
  hour: '0',
  dayOfMonth: '*',
  month: '*',
  dayOfWeek: '*',
  year: '*',
} as const satisfies Calendar;

const CALENDAR_FIELDS = Object.keys(CALENDAR_DEFAULTS) as (keyof typeof CALENDAR_DEFAULTS)[];

/** Checks what the server would accept and change, and what only a type has excluded; the rest is the server's to refuse. */
export function checkTiming(
  { cron = [], calendars = [], intervals = [] }: TimingOptions,
  problems: string[],
): readonly Timing[] {
  const texts = [
    ...cron.map((text) => cronText(text, problems)),
    ...calendars.map((each) => cronOf(each, problems)),
  ];
  const every = intervals.map((interval): Timing => {
    const everyMs = wholeSeconds('every', interval.every, problems);
    return { kind: 'every', everyMs, offsetMs: wholeSeconds('offset', interval.offset ?? '0s', problems) };
  });
  return [...texts.map((text): Timing => ({ kind: 'cron', text })), ...every];
}

function cronText(text: string, problems: string[]): string {
  // The server turns both into something else, and a repeated create could not tell that it is the same.
  if (/^\s*(CRON_)?TZ=/.test(text)) problems.push('cron: must not hold a time zone; give it as timezone');
  if (/^\s*@every/.test(text)) problems.push(`cron: ${quote(text)} is an interval; give it as every`);
  return text.trim();
}

/** The cron expression of a calendar, which is how the Temporal CLI sends one. */
function cronOf(calendar: unknown, problems: string[]): string {
  const report = (problem: string): void => {
    problems.push(`calendar: ${problem}`);
  };
  if (!isRecord(calendar)) {
    report(`must be an object such as {"dayOfWeek":"Fri","hour":"3"}; it is ${quote(calendar)}`);
    return '';
  }
  for (const name of Object.keys(calendar)) {
    if (name === 'comment' || CALENDAR_FIELDS.some((field) => field === name)) continue;
    report(`${quote(name)} is not a field of a calendar; the fields are ${CALENDAR_FIELDS.join(', ')}`);
  }
  const fields = CALENDAR_FIELDS.map((name) => {
    const value = calendar[name] ?? CALENDAR_DEFAULTS[name];
    if (typeof value === 'string' && /^[^\s#]+$/.test(value)) return value;
    report(`${name} must be a text without spaces, such as "1-5" or "1,15"; it is ${quote(value)}`);
    return '*';
  });
  const { comment } = calendar;
  return [...fields, ...(typeof comment === 'string' ? [`# ${comment}`] : [])].join(' ');
}

function wholeSeconds(field: 'every' | 'offset', text: string, problems: string[]): number {
  const parsed = parseDuration(text);
  if ('problem' in parsed) problems.push(`${field}: ${parsed.problem}`);
  // The server rounds.
  else if (parsed.ms % 1_000 !== 0) problems.push(`${field}: must be whole seconds; it is ${quote(text)}`);
  return 'ms' in parsed ? parsed.ms : 0;
}

/**
 * The rules in Temporal's terms. The server compiles a cron expression and keeps the comment behind it, so that the comment
 * is the expression once more. Temporal's Web UI does the same.
 */
export function temporalTiming(timings: readonly Timing[]): {
  calendars: [];
  cronExpressions: string[];
  intervals: IntervalSpec[];
} {
  const cronExpressions = timings.flatMap((timing) => {
    if (timing.kind === 'every') return [];
    const [expression = ''] = timing.text.split('#', 1);
    return [`${expression.trim()} # ${timing.text}`];
  });
  const intervals = timings.flatMap((timing) =>
    timing.kind === 'every' ? [{ every: timing.everyMs, offset: timing.offsetMs }] : [],
  );
  return { calendars: [], cronExpressions, intervals };
}

/** The rules of a schedule, whoever made it: a calendar by its cron expression if its comment is one, else by its fields. */
export function timingsOf({ calendars = [], intervals = [] }: ScheduleSpecDescription): Timing[] {
  return [
    ...calendars.map((calendar): Timing => {
      const { comment = '' } = calendar;
      return CRON.test(comment)
        ? { kind: 'cron', text: comment }
        : { kind: 'calendar', text: JSON.stringify(calendarOf(calendar)) };
    }),
    // The server leaves out an offset of zero, although the SDK's type has it.
    ...intervals.map(({ every, offset }: { readonly every: number; readonly offset?: number }): Timing => {
      return { kind: 'every', everyMs: every, offsetMs: offset ?? 0 };
    }),
  ];
}

/** Words that somebody wrote for people have no digit or asterisk for minute and hour. */
const CRON = /^(@\w+|[\d*]\S*\s+[\d*]\S*(\s+[^\s#]+){3,5})\s*(#.*)?$/s;

function calendarOf({ comment, ...fields }: CalendarSpecDescription): Calendar {
  const given = CALENDAR_FIELDS.map((name) => [name, rangesText(name, fields[name])] as const);
  return {
    ...Object.fromEntries(given.filter(([name, text]) => text !== CALENDAR_DEFAULTS[name])),
    ...(comment === undefined || comment === '' ? {} : { comment }),
  };
}

/** Ranges that stand for all values. */
const ALL: Readonly<Record<string, string>> = {
  second: '0-59',
  minute: '0-59',
  hour: '0-23',
  dayOfMonth: '1-31',
  month: 'JANUARY-DECEMBER',
  dayOfWeek: 'SUNDAY-SATURDAY',
  year: '',
};

function rangesText(
  name: string,
  ranges: readonly {
    readonly start: number | string;
    readonly end: number | string;
    readonly step: number;
  }[],
): string {
  const text = ranges
    .map(({ start, end, step }) => `${start}${end === start ? '' : `-${end}`}${step > 1 ? `/${step}` : ''}`)
    .join(',');
  return text === ALL[name] ? '*' : text;
}

/** A rule in words: `cron 0 3 * * MON-FRI`, `every 6h, 30m after`. */
export function timingText(timing: Timing): string {
  if (timing.kind !== 'every') return `${timing.kind} ${timing.text}`;
  const { everyMs, offsetMs } = timing;
  return `every ${formatDuration(everyMs)}${offsetMs === 0 ? '' : `, ${formatDuration(offsetMs)} after`}`;
}
