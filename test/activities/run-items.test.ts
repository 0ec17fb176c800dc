import { afterEach, expect, it, jest } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { Client } from '@temporalio/client';
import { ItemsOnServer } from '../../src/activities/batch/on-server';
import { runItems } from '../../src/activities/batch/run-items';
import { MEMO_BATCH, START } from '../../src/core/batch/state';
import { type End, endWithoutReceipt } from '../../src/core/end';

afterEach(() => {
  jest.restoreAllMocks();
});

const REJECTED: End = {
  outcome: 'FollowUpRejected',
  delivery: 'rejected',
  evidence: null,
  prLink: null,
  message: null,
};

// Proves B5, B9.
it('does not start an item again that an earlier run started and that was deleted, after the Temporal server rejects a retry of the item before it', async () => {
  const startedAt = '2026-11-28T00:00:00Z';
  const settings = { batchId: 'b', items: 2, bound: 2, paused: false, ending: null, rounds: 0 };
  const earlier = { begun: { cursor: 2, lanes: [] }, again: 'unsent', startedAt };
  const board = { ...START, cursor: 2, lanes: [[0, 2, 'free']] };
  const memo = { ...board, ...settings, ...earlier, concurrency: 1, tolerate: null };
  const connection = {
    workflowService: { listWorkflowExecutions: () => Promise.resolve({ executions: [] }) },
    plugins: [],
  };
  const client = new Client({ connection: connection as never });
  const describe = () => Promise.resolve({ memo: { [MEMO_BATCH]: memo }, raw: {} });
  jest.replaceProperty(client, 'workflow', { getHandle: () => ({ describe }) } as never);
  jest.replaceProperty(client, 'activity', { heartbeat: () => Promise.resolve() } as never);
  const info = { attempt: 1, currentAttemptScheduledTimestampMs: Date.now(), scheduledTimestampMs: 0 };
  const context = { client, info, cancellationSignal: new AbortController().signal };
  jest.spyOn(Context, 'current').mockReturnValue(context as unknown as Context);

  const items = ItemsOnServer.prototype;
  jest.spyOn(items, 'named').mockImplementation((item) => {
    return Promise.resolve({ workflowId: `follow-up:p:j:${item}`, isOwnName: false, promptDigest: '' });
  });
  jest.spyOn(items, 'addOpen').mockResolvedValue();
  jest.spyOn(items, 'isOpenLater').mockResolvedValue(false);
  jest.spyOn(items, 'endBefore').mockResolvedValue(undefined);
  jest.spyOn(items, 'ask').mockImplementation((item) => {
    const gone = { end: endWithoutReceipt('gone') };
    return Promise.resolve((item === 0 ? { end: REJECTED, runId: 'run', startedAt: 0 } : gone) as never);
  });
  const start = jest.spyOn(items, 'start').mockResolvedValue('exists');

  const position = await runItems({});
  expect(start.mock.calls.map(([item, retried]) => [item, retried])).toEqual([[0, 'run']]);
  expect(position).toMatchObject({ settled: 2, byFailure: { FollowUpRejected: 1, gone: 1 } });
});
