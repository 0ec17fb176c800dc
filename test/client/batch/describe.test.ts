import timers from 'node:timers/promises';
import { afterEach, expect, it, jest } from '@jest/globals';
import { type Client, ServiceError, WorkflowFailedError } from '@temporalio/client';
import { defaultPayloadConverter, TerminatedFailure } from '@temporalio/common';
import { EMPTY_BOARD } from '../../../src/batch/board';
import { type BatchMemo, MEMO_BATCH } from '../../../src/batch/memo';
import { BatchHandle } from '../../../src/client/batch/batch-client';
import { BatchResultReader, findBatch, watchBatch, readBatchView } from '../../../src/client/batch/describe';
import type { CallRunner } from '../../../src/client/call-runner';
import { BATCH_WORKFLOW } from '../../../src/contract/names';
import { ITEM_RESULT } from '../../harness/fixtures';

/** The memo of a batch with ten items. */
const BATCH_MEMO: BatchMemo = {
  ...EMPTY_BOARD,
  ...{ batchId: 'b', items: 10, digest: null, retryScope: null, startedAt: '2026-01-01T00:00:00.000Z' },
  ...{ concurrency: 2, maxFailures: null, activityCount: 1, isPaused: false, stopReason: null },
  ...{ activityStartedAt: 0, cursor: 10, startLimit: 10 },
};

const described = (name: string, raw: object = {}) => ({
  ...{ type: BATCH_WORKFLOW, workflowId: 'follow-up-batch:b', runId: 'r', taskQueue: 'q' },
  ...{
    raw: { workflowExecutionInfo: { firstRunId: 'r' }, ...raw },
    status: { name },
    startTime: new Date(0),
    closeTime: new Date(1),
  },
});

const describedAs = (...args: Parameters<typeof described>) =>
  jest.fn(() => Promise.resolve(described(...args)));

const unavailableError = new ServiceError('away', {
  cause: Object.assign(new Error('14 UNAVAILABLE'), { code: 14, details: '', metadata: {} }),
});

const terminatedError = new WorkflowFailedError(
  'it failed',
  new TerminatedFailure('the wrong prompt'),
  'TIMEOUT',
);

afterEach(() => {
  jest.restoreAllMocks();
});

function clientOf(describe: () => Promise<object>, result = () => Promise.resolve()): Client {
  return {
    workflow: { getHandle: () => ({ describe, result }) },
    workflowService: { describeTaskQueue: () => Promise.resolve({ pollers: [] }) },
    withDeadline: (_: number, call: () => unknown) => call(),
    options: { loadedDataConverter: { payloadConverter: defaultPayloadConverter, payloadCodecs: [] } },
  } as unknown as Client;
}

// The Temporal server shows the batch's activity as pending also after the batch has ended.
it('the state of a terminated batch has the reason of the termination, and not the problems of its activity', async () => {
  const pendingActivities = [{ activityType: { name: 'runItems' }, paused: true }];
  const description = describedAs('TERMINATED', { pendingActivities });
  const client = clientOf(description, () => Promise.reject(terminatedError));
  expect(await readBatchView(client, await findBatch(client, 'b'))).toMatchObject({
    state: 'terminated',
    message: 'the wrong prompt',
  });
});

it('watchBatch returns the last results with the next report if the Temporal server was unavailable when it read them', async () => {
  const client = clientOf(describedAs('COMPLETED'));
  const readNew = jest.spyOn(BatchResultReader.prototype, 'readNew').mockResolvedValue([ITEM_RESULT]);
  readNew.mockRejectedValueOnce(unavailableError);
  jest.spyOn(timers, 'setTimeout').mockResolvedValue(undefined);
  const reports: unknown[] = [];
  for await (const { results } of watchBatch(client, 'b', new AbortController().signal))
    reports.push(results);
  expect(reports).toEqual([[], [ITEM_RESULT]]);
});

it.each([
  ['while a batch runs for the first time, watchBatch reads the results of one ended item once', null, 1],
  [
    'while a retry runs, watchBatch reads the results again, because the list may not show the new run of an item yet',
    'unsent',
    3,
  ],
] as const)('%s', async (_, retryScope, reads) => {
  const memo = { [MEMO_BATCH]: { ...BATCH_MEMO, ended: 1, retryScope } };
  const running = { ...described('RUNNING'), closeTime: undefined, memo };
  const describe = jest.fn<() => Promise<object>>().mockResolvedValue(running);
  const readNew = jest.spyOn(BatchResultReader.prototype, 'readNew').mockResolvedValue([ITEM_RESULT]);
  jest.spyOn(BatchResultReader.prototype, 'returned', 'get').mockReturnValue(5);
  jest.spyOn(timers, 'setTimeout').mockResolvedValue(undefined);
  const reports = watchBatch(clientOf(describe), 'b', new AbortController().signal);
  for (let report = 0; report < 3; report += 1) await reports.next();
  expect(readNew).toHaveBeenCalledTimes(reads);
});

it('watchBatch keeps waiting if the Temporal server is unavailable at its first request', async () => {
  const describe = describedAs('TERMINATED').mockRejectedValueOnce(unavailableError);
  const client = clientOf(describe, () => Promise.reject(terminatedError));
  jest.spyOn(BatchResultReader.prototype, 'readNew').mockResolvedValue([ITEM_RESULT]);
  jest.spyOn(timers, 'setTimeout').mockResolvedValue(undefined);
  const reports: unknown[] = [];
  for await (const report of watchBatch(client, 'b', new AbortController().signal)) reports.push(report);
  expect(reports).toMatchObject([
    { view: null, results: [] },
    { view: { state: 'terminated' }, results: [ITEM_RESULT] },
  ]);
});

it('BatchHandle.result keeps waiting if the Temporal server is unavailable at its first and at its last request', async () => {
  const describe = describedAs('TERMINATED').mockRejectedValueOnce(unavailableError);
  const result = jest
    .fn<() => Promise<void>>()
    .mockRejectedValueOnce(unavailableError)
    .mockRejectedValue(terminatedError);
  jest.spyOn(timers, 'setTimeout').mockResolvedValue(undefined);
  const { signal } = new AbortController();
  const calls: Pick<CallRunner, 'run'> = {
    run: (_, work) => work(clientOf(describe, result), signal),
  };
  const batch = new BatchHandle(calls as CallRunner, 'b');
  expect(await batch.result()).toMatchObject({ state: 'terminated', message: 'the wrong prompt' });
  expect([describe, result].map((call) => call.mock.calls.length)).toEqual([2, 2]);
});
