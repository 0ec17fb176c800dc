import { describe, expect, it } from '@jest/globals';
import { historyBudgetWait, noRoomFor } from '../../../src/workflows/follow-up/history-budget';

describe('a history that has grown long', () => {
  const days = 86_400_000;

  it('is spared by longer waits, so that it reaches the deadline', () => {
    const bytesPerEvent = 300;
    const short = { historyLength: 9_999, historySize: 9_999 * bytesPerEvent };
    expect(historyBudgetWait(short, 30 * days)).toBe(0);
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

describe('what an operator asks for', () => {
  const day = 86_400_000;
  const small = { historyLength: 100, historySize: 100_000 };
  const large = { historyLength: 500, historySize: 11 * 1_024 * 1_024 };
  const full = { historyLength: 2_000, historySize: 41 * 1_024 * 1_024 };

  it.each([
    ['read', 'small', small, 'has room'],
    ['send', 'large', large, 'has room'],
    ['read', 'large', large, 'the history has 500 events and 11 MiB, and must last until the deadline'],
    ['send', 'full', full, '41 MiB; there is no room for another POST'],
  ] as const)('as %s in a %s history, %j: %s', (step, _, history, words) => {
    expect(noRoomFor(step, history, day) ?? 'has room').toContain(words);
  });
});
