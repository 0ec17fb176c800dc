import { describe, expect, it } from '@jest/globals';
import type { ScheduleOptions } from '../../../../src/client';
import { parseInstant } from '../../../../src/client/schedule/instant';
import {
  exampleBatchId,
  MAX_SCHEDULE_ID_CHARACTERS,
  scheduleIdProblem,
} from '../../../../src/client/schedule/schedule-id';
import { checkSettings, defaultSettings } from '../../../../src/client/schedule/settings';
import { parseTimezone } from '../../../../src/client/schedule/timezone';
import { batchIdProblem } from '../../../../src/contract/batch-id';

const defaults = defaultSettings('follow-up');
const nightly = { cron: ['0 3 * * *'] };

describe('the options of a schedule', () => {
  it('are complete with their defaults', () => {
    expect(checkSettings(nightly, defaults)).toEqual({
      problems: [],
      settings: {
        timing: [{ kind: 'cron', text: '0 3 * * *' }],
        timezone: 'UTC',
        startAt: null,
        endAt: null,
        jitterMs: 0,
        overlap: 'skip',
        catchupWindowMs: 600_000,
        pauseOnFailure: false,
        concurrency: 50,
        tolerate: null,
        taskQueue: 'follow-up',
      },
    });
  });

  it('change what they name: timing as a whole, a start or a tolerance to none', () => {
    const before = checkSettings(
      { ...nightly, startAt: '2026-01-01T00:00Z', tolerate: { items: 3 } },
      defaults,
    );
    const after = checkSettings({ every: ['6h'], startAt: null, tolerate: null }, before.settings);
    expect(after.settings).toEqual({
      ...before.settings,
      timing: [{ kind: 'every', everyMs: 21_600_000, offsetMs: 0 }],
      startAt: null,
      tolerate: null,
    });
    expect(checkSettings({ jitter: '1m' }, before.settings).settings).toEqual({
      ...before.settings,
      jitterMs: 60_000,
    });
  });

  it('write the same rule always the same way', () => {
    const { settings } = checkSettings(
      { cron: [' 0  3 * * * '], calendars: ['dayOfWeek=1-3,2,Thu hour=03'] },
      defaults,
    );
    expect(settings.timing).toEqual([
      { kind: 'cron', text: '0 3 * * *' },
      { kind: 'calendar', text: 'hour=3 dayOfWeek=MON-THU' },
    ]);
  });

  it('are told every problem at once', () => {
    const bad = {
      cron: ['x'],
      every: ['500ms', '6', '1500ms'],
      timezone: 'Mars/Base',
      overlap: 'never',
      catchupWindow: '5s',
      concurrency: 0,
      startAt: 'tomorrow',
    };
    const { problems } = checkSettings(bad as unknown as ScheduleOptions, defaults);
    expect(problems.map((problem) => problem.split(':', 1)[0]).sort()).toEqual(
      [
        'cron',
        'every',
        'every',
        'every',
        'timezone',
        'overlap',
        'catchupWindow',
        'concurrency',
        'startAt',
      ].sort(),
    );
  });

  it.each<[ScheduleOptions, string]>([
    [{}, 'timing: is missing'],
    [{ ...nightly, offset: '5m' }, 'offset: belongs to an interval'],
    [{ ...nightly, pauseOnFailure: true, overlap: 'allow-all' }, 'pauseOnFailure: has no effect'],
    [{ every: ['5m'], offset: '5m' }, 'offset: must be shorter than the interval of 5m'],
    [{ ...nightly, startAt: '2026-02-01T00:00Z', endAt: '2026-01-01T00:00Z' }, 'endAt: must be after'],
  ])('%j is refused: %s', (options, problem) => {
    expect(checkSettings(options, defaults).problems).toEqual([expect.stringContaining(problem)]);
  });
});

describe('the id of a schedule', () => {
  it.each(['', 'a b', 'a/b', 'ä', 'a:b', 'a%20b', 'x'.repeat(MAX_SCHEDULE_ID_CHARACTERS + 1)])(
    '%j is none',
    (id) => {
      expect(scheduleIdProblem(id)).toMatch(/^must /);
    },
  );

  it('may be as long as the batch ids of its firings, and of their retries, allow', () => {
    const longest = 'x'.repeat(MAX_SCHEDULE_ID_CHARACTERS);
    expect(scheduleIdProblem(longest)).toBeUndefined();
    expect(batchIdProblem(exampleBatchId(longest))).toBeUndefined();
    expect(batchIdProblem(exampleBatchId(longest + 'x'))).toBeDefined();
  });
});

describe('a time zone', () => {
  it('has an IANA name, in any case', () => {
    expect(parseTimezone('Europe/Berlin')).toBe('Europe/Berlin');
    expect(parseTimezone('europe/berlin')).toBe('Europe/Berlin');
    expect(parseTimezone('Asia/Kolkata')).toBe('Asia/Kolkata');
  });

  it.each(['Europe/Berlim', '+01:00', '', 'Mars/Base'])('%j is none', (name) => {
    expect(parseTimezone(name)).toMatchObject({ problem: expect.stringContaining('is no IANA name') });
  });

  it('that was misspelt is told with the one that was meant', () => {
    expect(parseTimezone('Europe/Berlim')).toMatchObject({
      problem: expect.stringContaining('did you mean Europe/Berlin?'),
    });
  });
});

describe('a moment', () => {
  it.each(['2026-11-21T03:00Z', '2026-11-21T03:00:00+01:00', '2026-11-21T03:00:00.5Z'])(
    'may be %s',
    (text) => {
      expect(parseInstant(text)).toEqual({ at: new Date(text) });
    },
  );

  it.each(['2026-11-21', '2026-11-21T03:00', '03:00Z', '2026-13-01T00:00Z', '2026-02-30T00:00Z', 'now'])(
    'is not %s',
    (text) => {
      expect(parseInstant(text)).toHaveProperty('problem');
    },
  );
});
