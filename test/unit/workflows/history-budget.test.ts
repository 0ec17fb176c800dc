import { describe, expect, it } from '@jest/globals';
import { historyBudgetWait } from '../../../src/workflows/follow-up/context';

describe('a history that has grown long', () => {
  const days = 86_400_000;

  it('is spared by longer waits, so that it reaches the deadline', () => {
    const bytesPerEvent = 300;
    expect(historyBudgetWait({ historyLength: 9_999, historySize: 9_999 * bytesPerEvent }, 30 * days)).toBe(
      0,
    );
    let historyLength = 10_000;
    for (let left = 365 * days; left > 0;) {
      historyLength += 12;
      left -= historyBudgetWait({ historyLength, historySize: historyLength * bytesPerEvent }, left);
    }
    expect(historyLength).toBeLessThan(51_200);
  });

  it('is spared in bytes as well, where each try to send records a message of the greatest length', () => {
    const everyMs = 30_000;
    let [historyLength, historySize] = [3, 256 * 1_024];
    for (let left = 7 * days; left > 0;) {
      historyLength += 12;
      historySize += 256 * 1_024 + 12 * 300;
      left -= Math.max(everyMs, historyBudgetWait({ historyLength, historySize }, left));
    }
    expect(historySize).toBeLessThan(50 * 1_024 * 1_024);
  });
});
