import { jest } from '@jest/globals';

/** From now on `setTimeout` waits for `jest.advanceTimersByTime`, until `jest.useRealTimers`; all else goes on in real time. */
export function holdTimers(): void {
  jest.useFakeTimers({
    doNotFake: [
      ...(['Date', 'hrtime', 'performance', 'nextTick', 'queueMicrotask'] as const),
      ...(['setImmediate', 'clearImmediate', 'setInterval', 'clearInterval'] as const),
    ],
  });
}
