import { expect, it } from '@jest/globals';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { lookForBatch } from '../../../src/client/batch/describe';

it.each([
  ['a b', 'a b'],
  ['a%20b', 'a%20b'],
  ['follow-up-batch:a b', 'a b'],
  ['nightly-2026-01-31T00:00:00Z', 'nightly-2026-01-31T00:00:00Z'],
])('the batch %s is looked for by its workflow id, and by no other', async (batch, batchId) => {
  const asked: string[] = [];
  const getHandle = (workflowId: string) => {
    asked.push(workflowId);
    return { describe: () => Promise.reject(new WorkflowNotFoundError('absent', workflowId, undefined)) };
  };
  expect(await lookForBatch({ workflow: { getHandle } } as unknown as Client, batch)).toBeNull();
  expect(asked).toEqual([`follow-up-batch:${batchId}`]);
});
