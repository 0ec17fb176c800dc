import { expect, it } from '@jest/globals';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { lookForBatch } from '../../../src/client/batch/describe';

it.each([
  ['a b', ['a%20b']],
  // Another batch than `a b`, although its id is how that one is encoded.
  ['a%20b', ['a%2520b']],
  ['follow-up-batch:a%20b', ['a%20b']],
  // A schedule has it as it is.
  ['nightly-2026-01-31T00:00:00Z', ['nightly-2026-01-31T00%3A00%3A00Z', 'nightly-2026-01-31T00:00:00Z']],
])('the batch %s is looked for by its workflow ids, and by no other', async (batch, encoded) => {
  const asked: string[] = [];
  const getHandle = (workflowId: string) => {
    asked.push(workflowId);
    return { describe: () => Promise.reject(new WorkflowNotFoundError('absent', workflowId, undefined)) };
  };
  expect(await lookForBatch({ workflow: { getHandle } } as unknown as Client, batch)).toBeNull();
  expect(asked).toEqual(encoded.map((each) => `follow-up-batch:${each}`));
});
