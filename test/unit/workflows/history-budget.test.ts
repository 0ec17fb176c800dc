import { describe, expect, it } from '@jest/globals';
import { historyBudgetWait } from '../../../src/workflows/follow-up/context';

describe('a history that has grown long', () => {
  const days = 86_400_000;

  it('is spared by longer waits, so that it reaches the deadline', () => {
    expect(historyBudgetWait(9_999, 30 * days)).toBe(0);
    let events = 10_000;
    for (let left = 365 * days; left > 0; left -= historyBudgetWait(events, left)) events += 12;
    expect(events).toBeLessThan(51_200);
  });
});
