import { afterEach, expect, it, jest } from '@jest/globals';
import { InProcessPoll } from '../../src/activities/in-process-polls';
import { NO_TROUBLE, startTally } from '../../src/core/tally';

afterEach(() => {
  jest.useRealTimers();
});

it('a wait that is handed over is no longer where the wall clock was set back meanwhile', async () => {
  jest.useFakeTimers();
  const poll = new InProcessPoll('run', startTally(NO_TROUBLE));
  const rest = poll.wait(30_000);
  jest.advanceTimersByTime(10_000);
  jest.setSystemTime(Date.now() - 3_600_000);
  poll.wake();
  expect(await rest).toBe(20_000);
});
