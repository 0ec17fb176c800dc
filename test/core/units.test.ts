import { expect, it } from '@jest/globals';
import { formatDuration, formatRate, parseDuration, parseRate } from '../../src/core/units';

it.each<[(given: never) => unknown, string | number, unknown]>([
  [parseDuration, '500ms', { ms: 500 }],
  [parseDuration, '1.5s', { ms: 1_500 }],
  [parseDuration, '0s', { ms: 0 }],
  [parseDuration, '3650d', { ms: 3_650 * 86_400_000 }],
  [formatDuration, -5, '0ms'],
  [formatDuration, 59_999, '1m'],
  [formatDuration, 200_000, '3m 20s'],
  [formatDuration, 356_400_000, '4d 3h'],
  [parseRate, '30/m', { perSecond: 0.5 }],
  [parseRate, '1000000/s', { perSecond: 1_000_000 }],
  [formatRate, 1 / 7, '514.286/h'],
  [formatRate, 1 / 100_000, '0.864/d'],
])('%p of %j is %j', (convert, given, expected) => {
  expect(convert(given as never)).toEqual(expected);
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

it('a rate is the same after a server has kept it as a float of 32 bits', () => {
  for (const text of ['90/h', '7/h', '100/d', '5/s', '333/h', '1/d']) {
    const { perSecond } = parseRate(text) as { perSecond: number };
    const again = parseRate(formatRate(Math.fround(perSecond)));
    expect(again).toEqual({ perSecond: expect.closeTo(perSecond, 10) });
  }
});
