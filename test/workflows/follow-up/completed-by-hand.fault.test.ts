import { describe, expect, it } from '@jest/globals';
import { eventually } from '../../harness/eventually';
import { ENDLESS, type FollowUpCaller, QUICK, UNKNOWN } from '../../harness/following';
import { Operator } from '../../harness/operator';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, newBatch } = sharedEnvironment();

/** A poll's counts as the activity would never count. */
const HALF_A_READ =
  '{"answer":null,"askedAt":0,"before":{"polls":0.5,"observed":{},"trouble":{"last":null,"count":0,"notFound":null},' +
  '"lastAnswer":null,"nextReadAt":null}}';

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
  it.concurrent.each([
    { type: 'getJob', timerPolls: 'all', json: '{"kind":"job","job":{"id":"1","status":7}}' },
    { type: 'pollJob', timerPolls: 1, json: HALF_A_READ },
  ] as const)('is a failed read: $type, $json', async ({ type, timerPolls, json }) => {
    const environment = await open();
    const following = await environment.follow(ENDLESS, { polling: { ...QUICK.polling, timerPolls } });
    await following.progressWhen(({ polls }) => polls > 0);
    following.setFault({ name: 'hold', operation: 'get', times: 1 });
    await following.reached({ fault: 'hold' });
    await complete(environment, following.handle.workflowId, type, json);
    following.release();
    following.changeJob({ status: 'completed' });
    const { status, followUp } = await following.result();
    expect([status, followUp.observed['read failed']]).toEqual(['completed', 1]);
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
