import { describe, expect, it } from '@jest/globals';
import { eventually } from '../../harness/eventually';
import { ENDLESS, type FollowUpCaller, UNKNOWN } from '../../harness/following';
import { Operator } from '../../harness/operator';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, newBatch } = sharedEnvironment();

/** It holds half a character, as JSON can write it. */
const FOREIGN =
  '{"kind":"posted","baseline":null,"sentAt":1,"outcome":{"verdict":"accepted","job":{"id":"1","status":"\\ud800",' +
  '"source":{"repository":null,"ref":null},"model":null,"createdAt":null,"prLink":null,"archivedAt":null}}}';

async function complete(
  { client }: FollowUpCaller,
  workflowId: string,
  type: string,
  json: string,
): Promise<void> {
  const operator = new Operator(client);
  await eventually(`${type} is completed by hand`, () => operator.complete(workflowId, type, json));
}

describe('an activity that an operator completes with what is no result of it', () => {
  // Proves P4.
  it.concurrent('leaves the delivery of a send unknown', async () => {
    const environment = await open();
    const following = await environment.follow({}, {}, { name: 'hold', operation: 'message', times: 1 });
    await following.reached({ operation: 'message' });
    await complete(environment, following.handle.workflowId, 'sendMessage', FOREIGN);
    const ending = await following.ending();
    following.release();
    expect(ending).toMatchObject({ type: 'DeliveryUnknown', delivery: UNKNOWN });
  });

  // Proves P4.
  it.concurrent('ends a batch, which goes on from the same items', async () => {
    const batch = await newBatch(2, ENDLESS);
    const { workflowId } = await batch.startUntilSent(1, { concurrency: 1 });
    await complete(batch.environment, workflowId, 'runItems', '{}');
    expect(await batch.handle.result()).toMatchObject({ state: 'incomplete' });
    await batch.startUntilSent(2, { concurrency: 2 });
    expect(await batch.finish()).toMatchObject({ state: 'done', summary: { byStatus: { completed: 2 } } });
    expect(batch.messages()).toEqual([1, 1]);
  });
});
