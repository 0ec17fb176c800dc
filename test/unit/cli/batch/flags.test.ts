import { describe, expect, it } from '@jest/globals';
import { batchOptionsOf, concurrencyOf } from '../../../../src/cli/flags/batch-flags';

describe('the flags by which a batch starts', () => {
  it.each([
    [{}, {}],
    [{ concurrency: '1' }, { concurrency: 1 }],
    [{ concurrency: '1000' }, { concurrency: 1_000 }],
    [{ tolerate: '0' }, { tolerate: { items: 0 } }],
    [{ tolerate: '25' }, { tolerate: { items: 25 } }],
    [{ tolerate: '2.5%' }, { tolerate: { percent: 2.5 } }],
    [{ tolerate: '100%' }, { tolerate: { percent: 100 } }],
  ])('%j is %j', (flags, options) => {
    expect(batchOptionsOf(flags)).toEqual(options);
  });

  it.each([
    [{ concurrency: '0' }, '--concurrency: must be a whole number from 1 to 1000; it is "0"'],
    [{ concurrency: '1001' }, '--concurrency: must be'],
    [{ concurrency: '1.5' }, '--concurrency: must be'],
    [{ concurrency: '' }, '--concurrency: must be'],
    [{ tolerate: '-1' }, '--tolerate: must be a number of items ("5") or a percentage of all ("2.5%")'],
    [{ tolerate: '1.5' }, '--tolerate: must be'],
    [{ tolerate: '101%' }, '--tolerate: must be'],
    [{ tolerate: '5 %' }, '--tolerate: must be'],
    [{ tolerate: '' }, '--tolerate: must be'],
  ])('%j is refused', (flags, problem) => {
    expect(() => batchOptionsOf(flags)).toThrow(problem);
  });

  it('are all told at once', () => {
    expect(() => batchOptionsOf({ concurrency: 'x', tolerate: 'y' })).toThrow(/--concurrency[^]*--tolerate/);
  });

  it('a concurrency that is an argument is no flag', () => {
    expect(concurrencyOf('7')).toBe(7);
    expect(() => concurrencyOf('many')).toThrow(/^concurrency: must be/);
  });
});
