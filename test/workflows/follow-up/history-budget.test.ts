import { expect, it } from '@jest/globals';
import { historyBudgetWait, noRoomFor } from '../../../src/workflows/follow-up/history-budget';

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

const small = { historyLength: 100, historySize: 100_000 };
const large = { historyLength: 500, historySize: 11 * 1_024 * 1_024 };
const full = { historyLength: 2_000, historySize: 41 * 1_024 * 1_024 };

it.each([
  ['read', 'small', small, 1_899, 'has room'],
  ['send', 'small', small, 1_900, 'has room'],
  ['send', 'large', large, 0, 'has room'],
  ['read', 'large', large, 0, 'the history has 500 events and 11 MiB, and must last until the deadline'],
  ['send', 'full', full, 0, '41 MiB; there is no room for another POST'],
  // Only a decision still fits into what the server takes.
  ['change', 'small', small, 1_900, 'the rest is kept for resolveDelivery'],
] as const)(
  'an operator’s %s in a %s history, %j with %d updates: %s',
  (step, _, history, updates, words) => {
    expect(noRoomFor(step, history, updates, DAY) ?? 'has room').toContain(words);
  },
);
