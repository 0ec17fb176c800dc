import { describe, expect, it } from '@jest/globals';
import { parseRetryAfter } from '../../../src/agent-api/outcome';

const NOW = Date.parse('2026-03-01T12:00:00.500Z');

describe('Retry-After', () => {
  it.each<[string | string[] | undefined, number | undefined]>([
    ['0', 0],
    ['120', 120_000],
    [' 7 ', 7_000],
    ['+3', 3_000],
    ['1.5', 1_500],
    ['-5', 0],
    [['4', '9'], 4_000],
    ['Sun, 01 Mar 2026 12:00:30 GMT', 29_500],
    ['Sunday, 01-Mar-26 12:00:30 GMT', 29_500],
    ['Sun Mar  1 12:00:30 2026', 29_500],
    ['2026-03-01T12:00:30Z', 29_500],
    ['Wed, 21 Oct 2015 07:28:00 GMT', 0],
    [undefined, undefined],
    [[], undefined],
    ['', undefined],
    ['soon', undefined],
    ['later 7', undefined],
    ['1e3', undefined],
    ['0x10', undefined],
    ['Infinity', undefined],
    ['NaN', undefined],
    ['12 seconds', undefined],
    ['Sun, 99 Foo 2026 12:00:30 GMT', undefined],
  ])('%j is %j ms', (header, expected) => {
    expect(parseRetryAfter(header, NOW)).toBe(expected);
  });

  it.each(['9'.repeat(400), '99999999999999999999', 'Fri, 31 Dec 9999 23:59:59 GMT'])(
    'an absurd one is a safe integer: %s',
    (header) => {
      const ms = parseRetryAfter(header, NOW);
      expect(Number.isSafeInteger(ms)).toBe(true);
      expect(ms).toBeGreaterThan(200_000_000_000_000);
    },
  );
});
