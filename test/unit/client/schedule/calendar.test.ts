import { describe, expect, it } from '@jest/globals';
import { calendarText, parseCalendar, parseCron } from '../../../../src/client/schedule/calendar';
import { specOf, textProblem, timingsOf } from '../../../../src/client/schedule/timing';

/** A cron expression in the words of a calendar. */
function inWords(cron: string): string {
  const parsed = parseCron(cron);
  if ('problem' in parsed) throw new Error(parsed.problem);
  return calendarText(parsed.calendar);
}

describe('a cron expression', () => {
  it.each([
    ['0 3 * * MON-FRI', 'hour=3 dayOfWeek=MON-FRI'],
    ['*/15 * * * *', 'minute=0,15,30,45 hour=*'],
    ['5/20 8-18/5 * * *', 'minute=5,25,45 hour=8,13,18'],
    ['0 0 1,15 jan,July *', 'dayOfMonth=1,15 month=JAN,JUL'],
    ['30 2 * * 7', 'minute=30 hour=2 dayOfWeek=SUN'],
    ['0 2 * * 5-7', 'hour=2 dayOfWeek=SUN,FRI-SAT'],
    ['0 2 * * fri-sun', 'hour=2 dayOfWeek=SUN,FRI-SAT'],
    ['0 2 * * 0-6', 'hour=2'],
    ['0 2 29 2 * 2028', 'hour=2 dayOfMonth=29 month=FEB year=2028'],
    ['*/20 * * * * * *', 'second=0,20,40 minute=* hour=*'],
    ['@daily', 'hour=0'],
    ['@weekly', 'dayOfWeek=SUN'],
  ])('%s fires at %s', (cron, calendar) => {
    expect(inWords(cron)).toBe(calendar);
  });

  it.each([
    ['0 3 * *', 'has 4 fields; write 5 (minute hour day-of-month month day-of-week)'],
    ['', 'has 0 fields'],
    ['60 3 * * *', '"60" is no minute; write 0 to 59'],
    ['0 24 * * *', '"24" is no hour'],
    ['0 3 * * MONDAYS', '"MONDAYS" is no day of the week; write 0 to 7 or SUN to SAT'],
    ['0 3 ? * *', '"?" is no day of the month'],
    ['0 3 * * FRI-MON', '"FRI-MON" ends before it begins; write it as two'],
    ['*/0 * * * *', 'has a step of 0'],
    ['1-2-3 * * * *', '"1-2-3" is no minute'],
    ['0 3 1, * *', '"" is no day of the month'],
    ['TZ=Europe/Berlin 0 3 * * *', 'give it as the timezone'],
    ['@every 5m', 'is an interval'],
    ['@nightly', 'is no short form'],
    ['0 3 * * * # nightly', 'holds a comment'],
  ])('%j is refused: %s', (cron, problem) => {
    expect(textProblem('cron', cron)).toContain(problem);
  });
});

describe('a calendar', () => {
  it('has 0 for the time of day that it does not name, and any day', () => {
    const parsed = parseCalendar('minute=30 hour=3');
    expect(parsed).toMatchObject({ calendar: { second: [0], minute: [30], hour: [3], dayOfWeek: '*' } });
  });

  it.each([
    ['hour', '"hour" must be field=value'],
    ['hour=', '"hour=" must be field=value'],
    ['', 'must be field=value'],
    ['hour=3 hours=4', '"hours" is no field of a calendar; did you mean hour?'],
    ['weekday=MON', 'the fields are second, minute, hour, dayOfMonth, month, dayOfWeek, year'],
    ['hour=3 hour=4', 'hour is given twice'],
    ['hour=25', '"25" is no hour'],
  ])('%j is refused: %s', (calendar, problem) => {
    expect(textProblem('calendar', calendar)).toContain(problem);
  });
});

describe('the rules of a schedule', () => {
  const rules = [
    { kind: 'cron', text: '0 3 * * MON-FRI' },
    { kind: 'calendar', text: 'hour=4' },
    { kind: 'every', everyMs: 3_600_000, offsetMs: 60_000 },
  ] as const;

  it('are read from Temporal as they were given', () => {
    expect(timingsOf(asDescribed(specOf(rules)))).toEqual(rules);
  });

  it("have a cron expression for comment, as those of Temporal's Web UI, and nothing else", () => {
    expect(specOf(rules).calendars.map(({ comment }) => comment)).toEqual(['0 3 * * MON-FRI', '']);
  });

  it('are read as calendars where somebody has changed the times and left the comment', () => {
    const described = asDescribed(specOf([rules[0]]));
    const [calendar] = described.calendars;
    const changed = { ...described, calendars: [{ ...calendar, hour: [{ start: 5, end: 5, step: 1 }] }] };
    expect(timingsOf(changed as typeof described)).toEqual([
      { kind: 'calendar', text: 'hour=5 dayOfWeek=MON-FRI' },
    ]);
  });
});

/** A specification as the server gives it back: `*` written out. */
function asDescribed({ calendars, intervals }: ReturnType<typeof specOf>) {
  const all = {
    dayOfMonth: [{ start: 1, end: 31, step: 1 }],
    month: [{ start: 'JANUARY', end: 'DECEMBER', step: 1 }],
    dayOfWeek: [{ start: 'SUNDAY', end: 'SATURDAY', step: 1 }],
    year: [],
  };
  const written = calendars.map((calendar) =>
    Object.fromEntries(
      Object.entries(calendar).map(([name, value]: [string, unknown]) => [
        name,
        value === '*' ? all[name as keyof typeof all] : value,
      ]),
    ),
  );
  return { calendars: written, intervals } as unknown as Required<
    Pick<Parameters<typeof timingsOf>[0], 'calendars' | 'intervals'>
  >;
}
