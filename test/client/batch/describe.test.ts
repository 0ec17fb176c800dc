import timers from 'node:timers/promises';
import { expect, it, jest } from '@jest/globals';
import { type Client, ServiceError, WorkflowFailedError } from '@temporalio/client';
import { defaultPayloadConverter, TerminatedFailure } from '@temporalio/common';
import { BatchResultReader, findBatch, watchBatch, readBatchView } from '../../../src/client/batch/describe';
import { BATCH_WORKFLOW } from '../../../src/contract/names';
import { ITEM_RESULT } from '../../harness/fixtures';

const described = (name: string, raw: object = {}) => ({
  ...{ type: BATCH_WORKFLOW, workflowId: 'follow-up-batch:b', runId: 'r', taskQueue: 'q', raw },
  ...{ status: { name }, startTime: new Date(0), closeTime: new Date(1) },
});

function clientOf(description: object, result = () => Promise.resolve()): Client {
  return {
    workflow: { getHandle: () => ({ describe: () => Promise.resolve(description), result }) },
    withDeadline: (_: number, ask: () => unknown) => ask(),
    options: { loadedDataConverter: { payloadConverter: defaultPayloadConverter, payloadCodecs: [] } },
  } as unknown as Client;
}

// The server shows its activity as pending after the end, too.
it('of a batch that was terminated the reason is told, and no trouble of its activity', async () => {
  const pendingActivities = [{ activityType: { name: 'runItems' }, paused: true }];
  const failed = new WorkflowFailedError('it failed', new TerminatedFailure('the wrong prompt'), 'TIMEOUT');
  const client = clientOf(described('TERMINATED', { pendingActivities }), () => Promise.reject(failed));
  expect(await readBatchView(client, await findBatch(client, 'b'))).toMatchObject({
    state: 'terminated',
    message: 'the wrong prompt',
  });
});

it('the last ends of a batch are told at the next look if the server did not answer while they were read', async () => {
  const client = clientOf(described('COMPLETED'));
  const cause = Object.assign(new Error('14 UNAVAILABLE'), { code: 14, details: '', metadata: {} });
  const news = jest.spyOn(BatchResultReader.prototype, 'readNew').mockResolvedValue([ITEM_RESULT]);
  news.mockRejectedValueOnce(new ServiceError('away', { cause }));
  jest.spyOn(timers, 'setTimeout').mockResolvedValue(undefined);
  const told: unknown[] = [];
  for await (const { results } of watchBatch(client, 'b', undefined)) told.push(results);
  jest.restoreAllMocks();
  expect(told).toEqual([[], [ITEM_RESULT]]);
});
