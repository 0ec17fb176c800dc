import { DAYS_OF_WEEK, MONTHS } from '@temporalio/client';

/** The fields of a calendar in the order of a cron expression of seven fields, with what each can hold. */
export const CALENDAR_FIELDS = {
  second: { minimum: 0, maximum: 59, usual: '0' },
  minute: { minimum: 0, maximum: 59, usual: '0' },
  hour: { minimum: 0, maximum: 23, usual: '0' },
  dayOfMonth: { minimum: 1, maximum: 31, usual: '*' },
  month: { minimum: 1, maximum: 12, usual: '*' },
  dayOfWeek: { minimum: 0, maximum: 7, usual: '*' },
  // The server looks no further (source: server 1.31, scheduler/calendar.go).
  year: { minimum: 2000, maximum: 2100, usual: '*' },
} as const;
export type CalendarField = keyof typeof CALENDAR_FIELDS;

export const CALENDAR_FIELD_NAMES = Object.keys(CALENDAR_FIELDS) as CalendarField[];

/** The values of a field, sorted and without repetition; `*` for all. Sunday is 0. */
export type FieldValues = readonly number[] | '*';

/**
 * Reads a field as cron has it: `*`, a value, a range `a-b`, each with a step `/n`, and lists of these. Months and days of
 * the week have names too.
 *
 * @returns the values, or what is wrong
 */
export function parseField(field: CalendarField, text: string): FieldValues | { readonly problem: string } {
  if (text === '*') return '*';
  const values = new Set<number>();
  for (const part of text.split(',')) {
    const range = parseRange(field, part);
    if ('problem' in range) return range;
    for (let value = range.first; value <= range.last; value += range.step) {
      values.add(field === 'dayOfWeek' ? value % 7 : value);
    }
  }
  return normal(field, [...values]);
}

/** Sorted values; `*` where they are all that there can be. */
export function normal(field: CalendarField, values: readonly number[]): FieldValues {
  const { minimum, maximum } = CALENDAR_FIELDS[field];
  const all = maximum - minimum + (field === 'dayOfWeek' ? 0 : 1);
  return values.length === all ? '*' : values.toSorted((one, other) => one - other);
}

/** Values as {@link parseField} reads them, neighbours as a range. */
export function fieldText(field: CalendarField, values: FieldValues): string {
  if (values === '*') return '*';
  const name = (value: number): string =>
    namesOf(field)[value - CALENDAR_FIELDS[field].minimum]?.slice(0, NAME_LETTERS) ?? String(value);
  return runsOf(values)
    .map(([first, last]) => (first === last ? name(first) : `${name(first)}-${name(last)}`))
    .join(',');
}

/** The first and the last of each run of neighbours. */
export function runsOf(values: readonly number[]): [first: number, last: number][] {
  const runs: [number, number][] = [];
  for (const value of values) {
    const run = runs.at(-1);
    if (run?.[1] === value - 1) run[1] = value;
    else runs.push([value, value]);
  }
  return runs;
}

interface Range {
  readonly first: number;
  readonly last: number;
  readonly step: number;
}

function parseRange(field: CalendarField, part: string): Range | { readonly problem: string } {
  const { minimum, maximum } = CALENDAR_FIELDS[field];
  const match = /^(?:(\*)|([^-/*]+)(?:-([^-/*]+))?)(?:\/(\d{1,4}))?$/.exec(part);
  if (match === null) return { problem: `${show(part)} is no ${WORDS[field]}; ${right(field)}` };
  const [, star, firstText = '', lastText, stepText] = match;
  const step = stepText === undefined ? 1 : Number(stepText);
  if (step === 0) return { problem: `${show(part)} has a step of 0; a step is 1 or more` };
  // Sunday is there twice, as 0 and as 7.
  if (star !== undefined) return { first: minimum, last: field === 'dayOfWeek' ? 6 : maximum, step };
  const first = valueOf(field, firstText);
  // As in cron, a single value with a step means from there on.
  const open = stepText === undefined ? first : field === 'dayOfWeek' ? 6 : maximum;
  const end = lastText === undefined ? open : valueOf(field, lastText);
  // In FRI-SUN, Sunday is the seventh day.
  const last = field === 'dayOfWeek' && lastText !== undefined && end === 0 && first !== 0 ? 7 : end;
  if (first === undefined || last === undefined)
    return { problem: `${show(part)} is no ${WORDS[field]}; ${right(field)}` };
  if (last < first)
    return { problem: `${show(part)} ends before it begins; write it as two, with a comma between` };
  return { first, last, step };
}

function valueOf(field: CalendarField, text: string): number | undefined {
  const { minimum, maximum } = CALENDAR_FIELDS[field];
  const index =
    text.length < NAME_LETTERS ? -1 : namesOf(field).findIndex((name) => name.startsWith(text.toUpperCase()));
  if (index >= 0) return minimum + index;
  const value = /^\d{1,4}$/.test(text) ? Number(text) : NaN;
  return value >= minimum && value <= maximum ? value : undefined;
}

/** The names of the values, from the first on; `MON`, `Mon` and `Monday` all stand for one. */
function namesOf(field: CalendarField): readonly string[] {
  return field === 'month' ? MONTHS : field === 'dayOfWeek' ? DAYS_OF_WEEK : [];
}

/** Letters of a name, at least. */
const NAME_LETTERS = 3;

const WORDS: Readonly<Record<CalendarField, string>> = {
  second: 'second',
  minute: 'minute',
  hour: 'hour',
  dayOfMonth: 'day of the month',
  month: 'month',
  dayOfWeek: 'day of the week',
  year: 'year',
};

function right(field: CalendarField): string {
  const { minimum, maximum } = CALENDAR_FIELDS[field];
  const names = field === 'month' ? ' or JAN to DEC' : field === 'dayOfWeek' ? ' or SUN to SAT' : '';
  return `write ${minimum} to ${maximum}${names}, *, a range a-b, a step /n, or a list with commas`;
}

function show(text: string): string {
  return JSON.stringify(text.slice(0, 40));
}
