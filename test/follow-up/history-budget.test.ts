import { expect, it } from '@jest/globals';
import { isHistoryFull, waitForHistory } from '../../src/follow-up/history-budget';

const HOUR_MS = 3_600_000;
const MIB = 1_024 * 1_024;

it.each([
  ['does not lengthen a wait in a short history', 500, 0.5 * MIB, 0],
  ['does not lengthen a wait until a quarter of the events is used', 9_999, MIB, 0],
  // 30,000 events are left, which are 2,500 reads in 24 hours.
  ['spreads the events that are left until the deadline', 10_000, MIB, (24 * HOUR_MS) / 2_500],
  // 100 events have used half of the bytes: the next 100 events are 8 reads or a few sends.
  ['spreads the bytes that are left if each event is large', 100, 20 * MIB, (24 * HOUR_MS) / (100 / 12)],
  ['waits until the deadline if nothing is left', 40_000, MIB, 24 * HOUR_MS],
])('%s', (_, historyLength, historySize, expected) => {
  expect(waitForHistory({ historyLength, historySize }, 24 * HOUR_MS)).toBe(Math.ceil(expected));
});

it.each([
  [39_999, 39 * MIB, false],
  [40_000, 0, true],
  [0, 40 * MIB, true],
])('a history of %i events and %i bytes is full: %s', (historyLength, historySize, expected) => {
  expect(isHistoryFull({ historyLength, historySize })).toBe(expected);
});
