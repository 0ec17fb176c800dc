import { expect, it } from '@jest/globals';
import { eventually } from '../harness/eventually';
import { ENDLESS } from '../harness/following';
import { Operator } from '../harness/operator';
import { sharedEnvironment } from '../harness/shared-environment';

const { newBatch } = sharedEnvironment();

// A follow-up is in the simulation.
// Proves P4.
it('a batch whose activity is completed by hand with no result of it ends, and goes on from the same items', async () => {
  const batch = await newBatch(2, ENDLESS);
  const { workflowId } = await batch.startUntilSent(1, { concurrency: 1 });
  const operator = new Operator(batch.environment.client);
  await eventually('it is completed by hand', () => operator.complete(workflowId, 'runItems', '{}'));
  expect(await batch.handle.result()).toMatchObject({ state: 'incomplete' });
  await batch.startUntilSent(2, { concurrency: 2 });
  expect(await batch.finish()).toMatchObject({ state: 'done', summary: { byStatus: { completed: 2 } } });
  expect(batch.messages()).toEqual([1, 1]);
});
