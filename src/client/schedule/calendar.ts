import { nearest } from '../../contract/nearest';
import {
  CALENDAR_FIELD_NAMES,
  CALENDAR_FIELDS,
  type CalendarField,
  fieldText,
  type FieldValues,
  parseField,
} from './calendar-field';

/** The times at which a calendar fires: those of which every field matches. */
export type Calendar = Readonly<Record<CalendarField, FieldValues>>;

export type Parsed = { readonly calendar: Calendar } | { readonly problem: string };

/** What cron's short forms stand for. */
const SHORT_FORMS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

/**
 * Reads a cron expression as Temporal does: of five fields (minute, hour, day of month, month, day of week), of six with the
 * year behind them, or of seven with the second before them too. Where day of month and day of week are both given, both
 * must match, unlike in Unix's cron.
 */
export function parseCron(text: string): Parsed {
  if (/^(CRON_)?TZ=/.test(text)) return { problem: 'gives a time zone; give it as the timezone instead' };
  if (text.startsWith('@every')) return { problem: `${show(text)} is an interval; give it as such` };
  const short = SHORT_FORMS[text];
  if (short === undefined && text.startsWith('@')) {
    return {
      problem: `${show(text)} is no short form; there are ${Object.keys(SHORT_FORMS).join(', ')}`,
    };
  }
  const fields = (short ?? text).trim().split(/\s+/);
  if (fields.length < 5 || fields.length > 7) {
    return {
      problem: `${show(text)} has ${text.trim() === '' ? 0 : fields.length} fields; write 5 (minute hour day-of-month month day-of-week), 6 (and a year) or 7 (a second before them)`,
    };
  }
  const names = fields.length === 7 ? CALENDAR_FIELD_NAMES : CALENDAR_FIELD_NAMES.slice(1);
  return calendarOf(new Map(fields.map((field, index) => [names[index] ?? 'year', field])), text);
}

/**
 * Reads a calendar as Temporal has it, as `dayOfWeek=MON-FRI hour=3 minute=30`. What is left out is `0` for second, minute
 * and hour, and `*` for the others.
 */
export function parseCalendar(text: string): Parsed {
  const given = new Map<CalendarField, string>();
  for (const word of text.trim().split(/\s+/)) {
    const [name = '', value, ...more] = word.split('=');
    const field = CALENDAR_FIELD_NAMES.find((known) => known === name);
    if (value === undefined || value === '' || more.length > 0) {
      return { problem: `${show(word)} must be field=value, for example "dayOfWeek=MON-FRI hour=3"` };
    }
    if (field === undefined) {
      const meant = nearest(name, CALENDAR_FIELD_NAMES);
      const hint =
        meant === undefined ? `the fields are ${CALENDAR_FIELD_NAMES.join(', ')}` : `did you mean ${meant}?`;
      return { problem: `${show(name)} is no field of a calendar; ${hint}` };
    }
    if (given.has(field)) return { problem: `${field} is given twice; write its values with commas` };
    given.set(field, value);
  }
  return calendarOf(given, text);
}

/** A calendar as {@link parseCalendar} reads it. */
export function calendarText(calendar: Calendar): string {
  const words = CALENDAR_FIELD_NAMES.map((field) => [field, fieldText(field, calendar[field])] as const)
    .filter(([field, text]) => text !== CALENDAR_FIELDS[field].usual)
    .map(([field, text]) => `${field}=${text}`);
  return words.length === 0 ? 'hour=0' : words.join(' ');
}

export function sameCalendar(one: Calendar, other: Calendar): boolean {
  return CALENDAR_FIELD_NAMES.every((field) => String(one[field]) === String(other[field]));
}

function calendarOf(given: ReadonlyMap<CalendarField, string>, text: string): Parsed {
  const values: Partial<Record<CalendarField, FieldValues>> = {};
  for (const field of CALENDAR_FIELD_NAMES) {
    const parsed = parseField(field, given.get(field) ?? CALENDAR_FIELDS[field].usual);
    if (typeof parsed === 'object' && 'problem' in parsed)
      return { problem: `${show(text)}: ${parsed.problem}` };
    values[field] = parsed;
  }
  return { calendar: values as Calendar };
}

function show(text: string): string {
  return JSON.stringify(text.slice(0, 60));
}
