import timers from 'node:timers/promises';
import { expect, it, jest } from '@jest/globals';
import { type Client, ServiceError, WorkflowFailedError } from '@temporalio/client';
import { defaultPayloadConverter, TerminatedFailure } from '@temporalio/common';
import { BatchResultReader, findBatch, watchBatch, readBatchView } from '../../../src/client/batch/describe';
import { BATCH_WORKFLOW } from '../../../src/contract/names';
import { ITEM_RESULT } from '../../harness/fixtures';

const described = (name: string, raw: object = {}) => ({
  ...{ type: BATCH_WORKFLOW, workflowId: 'follow-up-batch:b', runId: 'r', taskQueue: 'q' },
  ...{
    raw: { workflowExecutionInfo: { firstRunId: 'r' }, ...raw },
    status: { name },
    startTime: new Date(0),
    closeTime: new Date(1),
  },
});

function clientOf(description: object, result = () => Promise.resolve()): Client {
  return {
    workflow: { getHandle: () => ({ describe: () => Promise.resolve(description), result }) },
    withDeadline: (_: number, call: () => unknown) => call(),
    options: { loadedDataConverter: { payloadConverter: defaultPayloadConverter, payloadCodecs: [] } },
  } as unknown as Client;
}

// The Temporal server shows the batch's activity as pending also after the batch has ended.
it('the state of a terminated batch has the reason of the termination, and not the problems of its activity', async () => {
  const pendingActivities = [{ activityType: { name: 'runItems' }, paused: true }];
  const failed = new WorkflowFailedError('it failed', new TerminatedFailure('the wrong prompt'), 'TIMEOUT');
  const client = clientOf(described('TERMINATED', { pendingActivities }), () => Promise.reject(failed));
  expect(await readBatchView(client, await findBatch(client, 'b'))).toMatchObject({
    state: 'terminated',
    message: 'the wrong prompt',
  });
});

it('watchBatch returns the last results with the next update if the Temporal server was unavailable when it read them', async () => {
  const client = clientOf(described('COMPLETED'));
  const cause = Object.assign(new Error('14 UNAVAILABLE'), { code: 14, details: '', metadata: {} });
  const readNew = jest.spyOn(BatchResultReader.prototype, 'readNew').mockResolvedValue([ITEM_RESULT]);
  readNew.mockRejectedValueOnce(new ServiceError('away', { cause }));
  jest.spyOn(timers, 'setTimeout').mockResolvedValue(undefined);
  const updates: unknown[] = [];
  for await (const { results } of watchBatch(client, 'b', new AbortController().signal))
    updates.push(results);
  jest.restoreAllMocks();
  expect(updates).toEqual([[], [ITEM_RESULT]]);
});
