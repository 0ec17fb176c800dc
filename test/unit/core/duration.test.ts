import { describe, expect, it } from '@jest/globals';
import { formatDuration, parseDuration } from '../../../src/core/units';

describe('parseDuration', () => {
  it.each([
    ['500ms', 500],
    ['30s', 30_000],
    ['1.5s', 1_500],
    ['10m', 600_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
    ['0s', 0],
  ])('reads %s as %d ms', (text, ms) => {
    expect(parseDuration(text)).toEqual({ ms });
  });

  it.each([30, '30', ' 30 ', '1.5', '-3'])(
    'refuses %j, a bare number, and says that it needs a unit',
    (bare) => {
      expect(parseDuration(bare)).toEqual({ problem: expect.stringContaining('needs a unit') });
    },
  );

  it.each(['', 's', '30 s', '30sec', '-30s', '1e3s', 'soon', '٣s', {}, null, true, ['30s']])(
    'refuses %j and shows what is right',
    (text) => {
      expect(parseDuration(text)).toEqual({ problem: expect.stringContaining('"30s"') });
    },
  );

  it('refuses what no timer can wait for', () => {
    expect(parseDuration('3651d')).toEqual({ problem: expect.stringContaining('longer than 3650d') });
    expect(parseDuration('3650d')).toEqual({ ms: 3_650 * 86_400_000 });
  });
});

describe('formatDuration', () => {
  it.each([
    [-5, '0ms'],
    [850, '850ms'],
    [12_000, '12s'],
    [59_999, '1m'],
    [200_000, '3m 20s'],
    [7_500_000, '2h 5m'],
    [356_400_000, '4d 3h'],
  ])('writes %d ms as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});
