import { jest } from '@jest/globals';

/**
 * Makes `setTimeout` wait for `jest.advanceTimersByTime`, until the test calls `jest.useRealTimers`. Every other timer and clock
 * keeps real time.
 */
export function holdTimers(): void {
  jest.useFakeTimers({
    doNotFake: [
      ...(['Date', 'hrtime', 'performance', 'nextTick', 'queueMicrotask'] as const),
      ...(['setImmediate', 'clearImmediate', 'setInterval', 'clearInterval'] as const),
    ],
  });
}
