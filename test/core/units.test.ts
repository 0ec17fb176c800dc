import { describe, expect, it } from '@jest/globals';
import { formatDuration, formatRate, parseDuration, parseRate } from '../../src/core/units';

describe('parseDuration', () => {
  it.each([
    ['500ms', 500],
    ['1.5s', 1_500],
    ['10m', 600_000],
    ['24h', 86_400_000],
    ['0s', 0],
    ['3650d', 3_650 * 86_400_000],
  ])('reads %s as %d ms', (text, ms) => {
    expect(parseDuration(text)).toEqual({ ms });
  });

  it.each([
    [30, 'needs a unit'],
    [' 30 ', 'needs a unit'],
    ...['', '30 s', '-30s', '1e3s', '٣s', null, ['30s']].map((text) => [text, '"30s"'] as const),
    ['3651d', 'longer than 3650d'],
  ])('refuses %j and says what is right', (text, problem) => {
    expect(parseDuration(text)).toEqual({ problem: expect.stringContaining(problem) });
  });
});

it.each([
  [-5, '0ms'],
  [850, '850ms'],
  [12_000, '12s'],
  [59_999, '1m'],
  [200_000, '3m 20s'],
  [7_500_000, '2h 5m'],
  [356_400_000, '4d 3h'],
])('formatDuration writes %d ms as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

describe('parseRate', () => {
  it.each([
    ['5/s', 5],
    ['30/m', 0.5],
    ['90/h', 0.025],
    ['1/d', 1 / 86_400],
    ['1000000/s', 1_000_000],
  ])('reads %s as %d a second', (text, perSecond) => {
    expect(parseRate(text)).toEqual({ perSecond });
  });

  it.each([
    [90, 'needs a unit (s, m, h, d)'],
    ['0', 'needs a unit (s, m, h, d)'],
    ...['', '5 /s', '-5/s', '5/h/s', ['5/s']].map((text) => [text, '"90/h"'] as const),
    ['0.0/h', '"off" removes a limit'],
    ['0.9/d', '"off" removes a limit'],
    ['1000001/s', 'at most "1000000/s"'],
  ])('refuses %j and says what is right', (text, problem) => {
    expect(parseRate(text)).toEqual({ problem: expect.stringContaining(problem) });
  });
});

it.each([
  [0.025, '90/h'],
  [1 / 7, '514.286/h'],
  [1 / 100_000, '0.864/d'],
])('formatRate writes %d a second as %s', (perSecond, text) => {
  expect(formatRate(perSecond)).toBe(text);
});

it.each(['90/h', '7/h', '100/d', '5/s', '333/h', '1/d'])(
  'formatRate gives %s back after a server has kept it as a float of 32 bits',
  (text) => {
    const { perSecond } = parseRate(text) as { perSecond: number };
    const again = parseRate(formatRate(Math.fround(perSecond)));
    expect(again).toEqual({ perSecond: expect.closeTo(perSecond, 10) });
  },
);
