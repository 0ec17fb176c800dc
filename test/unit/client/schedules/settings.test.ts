import { describe, expect, it } from '@jest/globals';
import { ScheduleOverlapPolicy } from '@temporalio/client';
import { InvalidScheduleError, type ScheduleSpec } from '../../../../src/client';
import {
  exampleBatchId,
  idProblems,
  MAX_SCHEDULE_ID_CHARACTERS,
} from '../../../../src/client/schedules/action';
import {
  checkSpec,
  defaultSettings,
  inScheduleWords,
  overlapOf,
  parseTime,
  policyOf,
  OVERLAPS,
} from '../../../../src/client/schedules/settings';
import { batchIdProblem } from '../../../../src/core/batch';

const defaults = defaultSettings('follow-up');
const nightly = { cron: ['0 3 * * *'] };

describe('the options of a schedule', () => {
  it('are complete with their defaults', () => {
    expect(checkSpec(nightly, defaults)).toEqual({
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
    const before = checkSpec({ ...nightly, startAt: '2026-01-01T00:00Z', tolerate: { items: 3 } }, defaults);
    const after = checkSpec({ intervals: [{ every: '6h' }], startAt: null, tolerate: null }, before.settings);
    expect(after.settings).toEqual({
      ...before.settings,
      timing: [{ kind: 'every', everyMs: 21_600_000, offsetMs: 0 }],
      startAt: null,
      tolerate: null,
    });
    expect(checkSpec({ jitter: '1m' }, before.settings).settings).toEqual({
      ...before.settings,
      jitterMs: 60_000,
    });
  });

  it('are told every problem at once', () => {
    const bad = {
      cron: ['@every 5m'],
      calendars: ['hour=3'],
      intervals: [{ every: '500ms' }, { every: '6' }],
      timezone: '',
      overlap: 'never',
      catchupWindow: '5s',
      concurrency: 0,
      startAt: 'tomorrow',
    };
    const { problems } = checkSpec(bad as unknown as ScheduleSpec, defaults);
    expect(problems.map((problem) => problem.split(':', 1)[0]).sort()).toEqual(
      [
        'cron',
        'calendar',
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

  it.each<[ScheduleSpec, string]>([
    [{}, 'timing: is missing'],
    [{ ...nightly, pauseOnFailure: true, overlap: 'allow-all' }, 'pauseOnFailure: has no effect'],
    [{ ...nightly, startAt: '2026-02-01T00:00Z', endAt: '2026-01-01T00:00Z' }, 'endAt: must be after'],
  ])('%j is refused: %s', (options, problem) => {
    expect(checkSpec(options, defaults).problems).toEqual([expect.stringContaining(problem)]);
  });
});

describe('what the server refuses', () => {
  const refusal = (words: string) => new TypeError(words);

  it.each<[string, ScheduleSpec, string]>([
    ['Minute is not in range [0-59]', nightly, 'cron'],
    ['Hour is not in range [0-23]', { calendars: [{ hour: '25' }] }, 'calendar'],
    ['CronString does not have 5-7 fields', { ...nightly, calendars: [{}] }, 'cron, calendar'],
    ['unknown time zone Mars/Base', { ...nightly, timezone: 'Mars/Base' }, 'timezone'],
    ['interval is too small', { ...nightly, intervals: [{ every: '0s' }] }, 'every'],
    ['phase cannot be greater than Interval', { intervals: [{ every: '6h', offset: '7h' }] }, 'offset'],
  ])('is told with the name of the option: %s', (words, spec, option) => {
    const error = inScheduleWords(refusal(words), spec);
    expect(error).toBeInstanceOf(InvalidScheduleError);
    expect((error as InvalidScheduleError).problems).toEqual([`${option}: the server refuses it: ${words}`]);
  });

  it('for another reason stays as it is', () => {
    const error = new Error('unavailable');
    expect(inScheduleWords(error, nightly)).toBe(error);
  });
});

describe('an overlap policy', () => {
  it.each(OVERLAPS)('%s is one of Temporal', (overlap) => {
    expect(Object.values(ScheduleOverlapPolicy)).toContain(policyOf(overlap));
    expect(overlapOf(policyOf(overlap))).toBe(overlap);
  });
});

describe('the id of a schedule', () => {
  it.each(['', 'a b', 'a/b', 'ä', 'a:b', 'a%20b', 'x'.repeat(MAX_SCHEDULE_ID_CHARACTERS + 1)])(
    '%j is none',
    (id) => {
      expect(idProblems(id)).toEqual([expect.stringMatching(/^scheduleId: must /)]);
    },
  );

  it('may be as long as the batch ids of its firings allow', () => {
    const longest = 'x'.repeat(MAX_SCHEDULE_ID_CHARACTERS);
    expect(idProblems(longest)).toEqual([]);
    expect(batchIdProblem(exampleBatchId(longest))).toBeUndefined();
  });
});

describe('a time', () => {
  it.each(['2026-11-21T03:00Z', '2026-11-21T03:00:00+01:00', '2026-11-21T03:00:00.5Z'])(
    'may be %s',
    (text) => {
      expect(parseTime('at', text, [])).toEqual(new Date(text));
      expect(parseTime('at', new Date(text), [])).toEqual(new Date(text));
    },
  );

  it.each(['2026-11-21', '2026-11-21T03:00', '03:00Z', '2026-13-01T00:00Z', '2026-02-30T00:00Z', 'now'])(
    'is not %s',
    (text) => {
      const problems: string[] = [];
      expect(parseTime('at', text, problems)).toBeUndefined();
      expect(problems).toEqual([
        expect.stringMatching(/^at: ".+" is not an ISO 8601 date-time with an offset/),
      ]);
    },
  );
});
