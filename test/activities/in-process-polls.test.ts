import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { InProcessPoll, InProcessPolls } from '../../src/activities/in-process-polls';
import { NO_TROUBLE, startTally } from '../../src/core/tally';

const HOUR_MS = 3_600_000;

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

it('a wait that is handed over is no longer where the wall clock was set back meanwhile', async () => {
  const poll = new InProcessPoll('run', startTally(NO_TROUBLE));
  const rest = poll.wait(30_000);
  jest.advanceTimersByTime(10_000);
  jest.setSystemTime(Date.now() - HOUR_MS);
  poll.wake();
  expect(await rest).toBe(20_000);
});

it('limits are asked for each half a minute, also where the wall clock was set back', async () => {
  const describeTaskQueue = jest.fn(() => Promise.resolve({}));
  const withDeadline = (_: number, ask: () => unknown) => ask();
  const client = { withDeadline, workflowService: { describeTaskQueue } };
  const info = { namespace: 'default', taskQueue: 'reads' };
  jest.spyOn(Context, 'current').mockReturnValue({ info, client } as unknown as Context);
  const polls = new InProcessPolls({ maximum: 1, shutdown: new AbortController().signal });
  const poll = new InProcessPoll('run', startTally(NO_TROUBLE));
  const ask = () => polls.mayWait(poll, 1_000);
  expect([await ask(), await ask(), describeTaskQueue.mock.calls.length]).toEqual([true, true, 1]);
  jest.setSystemTime(Date.now() - HOUR_MS);
  jest.advanceTimersByTime(30_000);
  expect([await ask(), describeTaskQueue.mock.calls.length]).toEqual([true, 2]);
});
