import { describe, expect, it } from '@jest/globals';
import { formatRate, parseRate } from '../../../src/core/units';

describe('parseRate', () => {
  it.each([
    ['5/s', 5],
    ['0.2/s', 0.2],
    ['30/m', 0.5],
    ['90/h', 0.025],
    ['1.5/m', 0.025],
    ['86400/d', 1],
    ['1/d', 1 / 86_400],
    ['1000000/s', 1_000_000],
  ])('reads %s as %d a second', (text, perSecond) => {
    expect(parseRate(text)).toEqual({ perSecond });
  });

  it.each([90, '90', ' 90 ', '1.5', '-3', '0'])(
    'refuses %j, a bare number, and says what it needs',
    (bare) => {
      expect(parseRate(bare)).toEqual({ problem: expect.stringContaining('needs a unit, e.g. "90/h"') });
    },
  );

  it.each([
    '',
    '/s',
    '5/',
    '5 /s',
    '5/sec',
    '-5/s',
    '1e3/s',
    '5/h/s',
    'fast',
    '٣/s',
    {},
    null,
    true,
    ['5/s'],
  ])('refuses %j and shows what is right', (text) => {
    expect(parseRate(text)).toEqual({ problem: expect.stringContaining('"90/h"') });
  });

  it.each(['0/s', '0.0/h', '0.9/d'])('refuses %s, which would stop everything', (text) => {
    expect(parseRate(text)).toEqual({ problem: expect.stringContaining('"off" removes a limit') });
  });

  it('refuses what no task queue hands out', () => {
    expect(parseRate('1000001/s')).toEqual({ problem: expect.stringContaining('at most "1000000/s"') });
  });
});

describe('formatRate', () => {
  it.each([
    [5, '5/s'],
    [2.5, '9000/h'],
    [300 / 3_600, '300/h'],
    [0.05 / 60, '3/h'],
    [0.2, '720/h'],
    [0.025, '90/h'],
    [100 / 86_400, '100/d'],
    [1 / 7, '514.286/h'],
    [1 / 100_000, '0.864/d'],
    [1_000_000, '1000000/s'],
  ])('writes %d a second as %s', (perSecond, text) => {
    expect(formatRate(perSecond)).toBe(text);
  });

  it.each(['90/h', '100/h', '7/h', '100/d', '5/s', '30/m', '333/h', '1/d'])(
    'gives %s back after a server has kept it as a float of 32 bits',
    (text) => {
      const parsed = parseRate(text);
      const perSecond = 'perSecond' in parsed ? Math.fround(parsed.perSecond) : NaN;
      expect(parseRate(formatRate(perSecond))).toEqual({
        perSecond: expect.closeTo((parsed as { perSecond: number }).perSecond, 10),
      });
    },
  );
});
