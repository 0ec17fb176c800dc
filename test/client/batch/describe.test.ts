import timers from 'node:timers/promises';
import { expect, it, jest } from '@jest/globals';
import { type Client, ServiceError } from '@temporalio/client';
import { BatchEnds, looksAt } from '../../../src/client/batch/describe';
import { BATCH_WORKFLOW } from '../../../src/core/names';
import { ITEM_END } from '../../harness/samples';

it('the last ends of a batch are told at the next look if the server did not answer while they were read', async () => {
  const description = {
    ...{ type: BATCH_WORKFLOW, workflowId: 'follow-up-batch:b', runId: 'r', taskQueue: 'q', raw: {} },
    ...{ status: { name: 'COMPLETED' }, startTime: new Date(0), closeTime: new Date(1) },
  };
  const client = {
    workflow: { getHandle: () => ({ describe: () => Promise.resolve(description) }) },
    withDeadline: (_: number, ask: () => unknown) => ask(),
  } as unknown as Client;
  const cause = Object.assign(new Error('14 UNAVAILABLE'), { code: 14, details: '', metadata: {} });
  const news = jest.spyOn(BatchEnds.prototype, 'news').mockResolvedValue([ITEM_END]);
  news.mockRejectedValueOnce(new ServiceError('away', { cause }));
  jest.spyOn(timers, 'setTimeout').mockResolvedValue(undefined);
  const told: unknown[] = [];
  for await (const { ends } of looksAt(client, 'b', undefined)) told.push(ends);
  jest.restoreAllMocks();
  expect(told).toEqual([[], [ITEM_END]]);
});
