import { expect, it } from '@jest/globals';
import { isHistoryFull, minWaitForHistoryMs } from '../../src/follow-up/history-budget';

const MIB = 1_024 * 1_024;
const DAY = 86_400_000;

// The columns are the events, the size in MiB, and the minimum wait in seconds. The deadline is in a day.
it.each([
  ['a short history needs no minimum wait', 9_999, 1, 0],
  ['at a quarter of 40,000 events, the remaining events must last until the deadline', 10_000, 1, 35],
  ['half of the events are left', 20_000, 1, 52],
  ['at a quarter of 40 MiB, the remaining size must last until the deadline', 100, 10, 3_456],
  ['the history is full: the next wait is until the deadline', 40_000, 1, 86_400],
])('the minimum wait makes a history last until the deadline: %s', (_, historyLength, size, wait) => {
  const waitMs = minWaitForHistoryMs({ historyLength, historySize: size * MIB }, DAY);
  expect(Math.round(waitMs / 1_000)).toBe(wait);
});

it.each([
  [39_999, 39, false],
  [40_000, 1, true],
  [100, 40, true],
])('whether a history of %i events and %i MiB is full: %j', (historyLength, size, isFull) => {
  expect(isHistoryFull({ historyLength, historySize: size * MIB })).toBe(isFull);
});

it.each([
  ['reads for a year', 365 * DAY, 10_000, 0, 0],
  // Each send records the message again.
  ['sends of a message of the maximum size for a week', 7 * DAY, 3, 256 * 1_024, 30_000],
])('a history lasts until the deadline with %s', (_, untilDeadlineMs, startLength, messageBytes, everyMs) => {
  let historyLength = startLength;
  let historySize = startLength * 300 + messageBytes;
  for (let leftMs = untilDeadlineMs; leftMs > 0;) {
    historyLength += 12;
    historySize += 12 * 300 + messageBytes;
    leftMs -= Math.max(everyMs, minWaitForHistoryMs({ historyLength, historySize }, leftMs));
  }
  expect(historyLength).toBeLessThan(51_200);
  expect(historySize).toBeLessThan(50 * MIB);
});
