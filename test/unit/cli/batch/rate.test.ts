import { describe, expect, it } from '@jest/globals';
import { Rate, rateText, timeLeft } from '../../../../src/cli/render/batch-frame';

describe('the rate of a batch', () => {
  it('is unknown for the first five seconds', () => {
    const rate = new Rate();
    expect(rate.perMinute()).toBeNull();
    rate.add(0, 10);
    rate.add(4_999, 20);
    expect(rate.perMinute()).toBeNull();
    rate.add(5_000, 20);
    expect(rate.perMinute()).toBe(120);
  });

  it('counts what settled while it looked, and not what was there before', () => {
    const rate = new Rate();
    rate.add(0, 1_000);
    rate.add(60_000, 1_030);
    expect(rate.perMinute()).toBe(30);
  });

  it('forgets what is longer ago than three minutes', () => {
    const rate = new Rate();
    for (let second = 0; second <= 600; second += 1) rate.add(second * 1_000, Math.min(second, 300));
    expect(rate.perMinute()).toBe(0);
  });

  it.each([
    [0.44, '0.4/min'],
    [9.96, '10.0/min'],
    [41.6, '42/min'],
  ])('%p reads %p', (perMinute, text) => {
    expect(rateText(perMinute)).toBe(text);
  });
});

describe('the time left', () => {
  it.each([
    [100, 50, '2m left'],
    [1, 90, '1s left'],
    [90_000, 60, '1d 1h left'],
  ])('of %i items at %i a minute is %p', (items, perMinute, text) => {
    expect(timeLeft(items, perMinute)).toBe(text);
  });

  it.each([null, 0])('is unknown at a rate of %p', (perMinute) => {
    expect(timeLeft(10, perMinute)).toBeNull();
  });
});
