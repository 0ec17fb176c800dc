import { expect, it } from '@jest/globals';
import { historyBudgetWait } from '../../../src/workflows/follow-up/history-budget';

const DAY = 86_400_000;
const MESSAGE = 256 * 1_024;

it.each([
  ['reads', 365 * DAY, 10_000, 0, 0],
  // Each records the message again.
  ['tries to send a message of the greatest length', 7 * DAY, 3, MESSAGE, 30_000],
])(
  'a history of %s is spared by longer waits, so that it lasts until the deadline',
  (_, ms, length, message, everyMs) => {
    let [historyLength, historySize] = [length, length * 300 + message];
    for (let left = ms; left > 0;) {
      historyLength += 12;
      historySize += 12 * 300 + message;
      left -= Math.max(everyMs, historyBudgetWait({ historyLength, historySize }, left));
    }
    expect(historyLength).toBeLessThan(51_200);
    expect(historySize).toBeLessThan(50 * 1_024 * 1_024);
  },
);
