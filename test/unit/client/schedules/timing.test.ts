import { describe, expect, it } from '@jest/globals';
import type { CalendarSpecDescription } from '@temporalio/client';
import {
  checkTiming,
  temporalTiming,
  type TimingOptions,
  timingsOf,
} from '../../../../src/client/schedules/timing';

function problemsOf(options: object): string[] {
  const problems: string[] = [];
  checkTiming(options, problems);
  return problems;
}

/** What the server is given for a cron expression or a calendar. */
function sent(options: TimingOptions): string[] {
  return temporalTiming(checkTiming(options, [])).cronExpressions;
}

describe('a cron expression', () => {
  it.each(['0 3 * * MON-FRI', '@daily', '*/20 * * * * * *', 'anything at all'])(
    'goes to the server as it is, and once more as the comment that the server keeps: %s',
    (cron) => {
      expect(sent({ cron: [cron] })).toEqual([`${cron} # ${cron}`]);
      expect(problemsOf({ cron: [cron] })).toEqual([]);
    },
  );

  it('keeps its own comment', () => {
    expect(sent({ cron: ['0 3 * * * # nightly'] })).toEqual(['0 3 * * * # 0 3 * * * # nightly']);
  });

  it.each([
    ['TZ=Europe/Berlin 0 3 * * *', 'give it as timezone'],
    ['CRON_TZ=Europe/Berlin 0 3 * * *', 'give it as timezone'],
    ['@every 5m', 'is an interval; give it as every'],
  ])('is refused where the server would make something else of it: %s', (cron, words) => {
    expect(problemsOf({ cron: [cron] })).toEqual([expect.stringContaining(words)]);
  });
});

describe('a calendar', () => {
  it.each([
    [{ dayOfWeek: 'Fri', hour: '3' }, '0 0 3 * * Fri *'],
    [{}, '0 0 0 * * * *'],
    [
      { second: '1', minute: '2', hour: '3', dayOfMonth: '4', month: '5', dayOfWeek: '6', year: '2027' },
      '1 2 3 4 5 6 2027',
    ],
  ])('%j is sent as the cron expression that it stands for', (calendar, cron) => {
    expect(sent({ calendars: [calendar] })).toEqual([`${cron} # ${cron}`]);
  });

  it('keeps its comment', () => {
    expect(sent({ calendars: [{ hour: '3', comment: 'nightly' }] })).toEqual([
      '0 0 3 * * * * # 0 0 3 * * * * # nightly',
    ]);
  });

  it.each([
    ['hour=3', 'calendar: must be an object such as {"dayOfWeek":"Fri","hour":"3"}; it is "hour=3"'],
    [[], 'it is []'],
    [
      { hours: '3' },
      'calendar: "hours" is not a field of a calendar; the fields are second, minute, hour, dayOfMonth, month, dayOfWeek, year',
    ],
    [{ day: 'Fri' }, 'the fields are second, minute, hour, dayOfMonth, month, dayOfWeek, year'],
    [{ hour: 3 }, 'calendar: hour must be a text without spaces, such as "1-5" or "1,15"; it is 3'],
    [{ hour: '3, 4' }, 'it is "3, 4"'],
    [{ hour: '' }, 'it is ""'],
    [{ hour: '3#' }, 'it is "3#"'],
  ])('%j is refused: %s', (calendar, words) => {
    expect(problemsOf({ calendars: [calendar] })).toEqual([expect.stringContaining(words)]);
  });
});

describe('an interval', () => {
  it.each([
    [{ every: '6' }, 'every: "6" needs a unit'],
    [{ every: '1500ms' }, 'every: must be whole seconds'],
    [{ every: '6h', offset: '1500ms' }, 'offset: must be whole seconds'],
  ])('%j is refused: %s', (interval, words) => {
    expect(problemsOf({ intervals: [interval] })).toEqual([expect.stringContaining(words)]);
  });
});

describe('the rules of a schedule', () => {
  it('are read from Temporal as they were given', () => {
    const timings = checkTiming(
      {
        cron: ['0 3 * * MON-FRI', '@daily'],
        calendars: [{ hour: '4' }],
        intervals: [{ every: '1h', offset: '1m' }],
      },
      [],
    );
    const { cronExpressions, intervals } = temporalTiming(timings);
    const calendars = cronExpressions.map((cron) => calendar({ comment: cron.replace(/^.*? # /, '') }));
    expect(timingsOf({ calendars, intervals: intervals as never })).toEqual(timings);
  });

  it('made elsewhere are shown as the Temporal CLI takes them', () => {
    const made = calendar({
      minute: [{ start: 0, end: 59, step: 15 }],
      hour: [
        { start: 3, end: 3, step: 1 },
        { start: 8, end: 18, step: 1 },
      ],
      dayOfWeek: [{ start: 'MONDAY', end: 'FRIDAY', step: 1 }],
      year: [{ start: 2027, end: 2027, step: 1 }],
      comment: 'in office hours, each day of the week',
    });
    const text =
      '{"minute":"0-59/15","hour":"3,8-18","dayOfWeek":"MONDAY-FRIDAY","year":"2027","comment":"in office hours, each day of the week"}';
    expect(timingsOf({ calendars: [made] })).toEqual([{ kind: 'calendar', text }]);
    expect(problemsOf({ calendars: [JSON.parse(text)] })).toEqual([]);
  });

  it('have an offset of zero where the server gives none', () => {
    expect(timingsOf({ intervals: [{ every: 3_600_000 }] as never })).toEqual([
      { kind: 'every', everyMs: 3_600_000, offsetMs: 0 },
    ]);
  });
});

/** A calendar as the server gives it back: each day at midnight. */
function calendar(fields: Partial<CalendarSpecDescription>): CalendarSpecDescription {
  const zero = [{ start: 0, end: 0, step: 1 }];
  return {
    second: zero,
    minute: zero,
    hour: zero,
    dayOfMonth: [{ start: 1, end: 31, step: 1 }],
    month: [{ start: 'JANUARY', end: 'DECEMBER', step: 1 }],
    year: [],
    dayOfWeek: [{ start: 'SUNDAY', end: 'SATURDAY', step: 1 }],
    ...fields,
  };
}
