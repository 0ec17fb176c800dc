import { expect, it } from '@jest/globals';
import { formatDuration, formatRate, parseDuration, parseRate } from '../../src/core/units';

it.each([
  ['500ms', 500],
  ['1.5s', 1_500],
  ['10m', 600_000],
  ['24h', 86_400_000],
  ['0s', 0],
  ['3650d', 3_650 * 86_400_000],
])('the duration %s has %d ms', (text, ms) => {
  expect(parseDuration(text)).toEqual({ ms });
});

it.each([
  [-5, '0ms'],
  [850, '850ms'],
  [59_999, '1m'],
  [200_000, '3m 20s'],
  [356_400_000, '4d 3h'],
])('%d ms are written as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

it.each([
  ['30/m', 0.5],
  ['90/h', 0.025],
  ['1/d', 1 / 86_400],
  ['1000000/s', 1_000_000],
])('the rate %s is %d a second', (text, perSecond) => {
  expect(parseRate(text)).toEqual({ perSecond });
});

it.each([
  [parseDuration, [30, ' 30 '], 'needs a unit'],
  [parseDuration, ['', '30 s', '-30s', '1e3s', '٣s', null, ['30s']], '"30s"'],
  [parseDuration, ['3651d'], 'longer than 3650d'],
  [parseRate, [90, '0'], 'needs a unit (s, m, h, d)'],
  [parseRate, ['', '5 /s', '-5/s', '5/h/s', ['5/s']], '"90/h"'],
  [parseRate, ['0.0/h', '0.9/d'], '"off" removes a limit'],
  [parseRate, ['1000001/s'], 'at most "1000000/s"'],
])('%p refuses %j and says what is right', (parse: (text: unknown) => object, texts, problem) => {
  for (const text of texts) expect(parse(text)).toEqual({ problem: expect.stringContaining(problem) });
});

it.each([
  [0.025, '90/h'],
  [1 / 7, '514.286/h'],
  [1 / 100_000, '0.864/d'],
])('%d a second is written as %s', (perSecond, text) => {
  expect(formatRate(perSecond)).toBe(text);
});

it('a rate is the same after a server has kept it as a float of 32 bits', () => {
  for (const text of ['90/h', '7/h', '100/d', '5/s', '333/h', '1/d']) {
    const { perSecond } = parseRate(text) as { perSecond: number };
    const again = parseRate(formatRate(Math.fround(perSecond)));
    expect(again).toEqual({ perSecond: expect.closeTo(perSecond, 10) });
  }
});
