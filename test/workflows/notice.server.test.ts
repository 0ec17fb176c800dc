import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, it } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import type { Notice } from '../../src/core/activities';
import { SWIFT } from '../harness/batch-of-test';
import { Environment } from '../harness/environment';
import { eventually } from '../harness/eventually';
import { ENDLESS } from '../harness/following';
import { showsPhase } from '../harness/scenario';

const secret = () => `whsec_${randomBytes(24).toString('base64')}`;
const RECEIVERS = secret();
const LOST = { name: 'processed-then-close', operation: 'message' } as const;
const ASKED = { ...SWIFT, onUnknownDelivery: 'ask' } as const;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** One POST: its verified body, its `webhook-id`, and how it is answered. */
interface Received {
  readonly id: string;
  readonly notice: Notice;
  readonly response: ServerResponse;
}

/** A receiver with the JavaScript library of Standard Webhooks, which throws where a signature is wrong; and who tells it. */
async function opened(
  answer: (received: Received) => void = ({ response }) => response.writeHead(204).end(),
) {
  const all: Received[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const headers = request.headers as Record<string, string>;
      const notice = new Webhook(RECEIVERS).verify(await text(request), headers) as Notice;
      const received = { id: headers['webhook-id'] ?? '', notice, response };
      all.push(received);
      answer(received);
    })();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  closing.push(() => server.close().closeAllConnections());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/follow-ups`;
  const secrets = { current: () => Promise.resolve(`${secret()},${RECEIVERS}`) };
  const environment = await Environment.open({ notify: { url, secrets } });
  closing.push(environment.close);
  /** The notices of a follow-up or a batch, in the order of their arrival. */
  const told = (workflowId: string, count = 1) =>
    eventually(
      'the receiver is told',
      () => all.filter(({ notice }) => notice.data.workflowId === workflowId),
      { until: ({ length }) => length >= count },
    );
  return { environment, told };
}

it('the end of a follow-up, a need for a decision, a cancellation, and the end of a batch and of its items are told, without the prompt', async () => {
  const { environment, told } = await opened();
  const following = await environment.follow({}, { ...SWIFT, prompt: 'a secret wish' });
  const { id: jobId, prLink, followUp } = await following.result();
  const { workflowId } = following.handle;
  const [ended] = await told(workflowId);
  const { projectId } = following.key;
  const { requestId, evidence } = followUp;
  const named = { workflowId, projectId, jobId, requestId, batchId: null };
  const outcome = { outcome: 'completed', status: 'completed', prLink, verdict: 'accepted', evidence };
  expect(ended?.notice).toEqual({
    type: 'follow-up.ended',
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
    data: { ...named, ...outcome },
  });

  const asking = await environment.follow({ status: 'active', ...ENDLESS }, ASKED, LOST);
  await showsPhase(asking, 'needs-decision');
  await told(asking.handle.workflowId);
  await asking.handle.cancel();
  const both = await told(asking.handle.workflowId, 2);
  expect(both.map(({ notice: { type, data } }) => ({ type, data }))).toMatchObject([
    { type: 'follow-up.needs-decision', data: { outcome: null, verdict: 'unknown', status: 'active' } },
    { type: 'follow-up.ended', data: { outcome: 'cancelled', verdict: 'unknown' } },
  ]);

  const items = [1, 2].map(() => ({ ...environment.addJob(), prompt: 'Go on.', ...SWIFT }));
  const batch = await environment.followUps.batches.start(items, { batchId: `told-${projectId}` });
  await batch.result();
  const [ofBatch] = await told(batch.workflowId);
  const counts = { outcome: 'done', items: 2, settled: 2, unknownDeliveries: 0 };
  expect(ofBatch?.notice).toMatchObject({
    type: 'follow-up-batch.ended',
    data: { batchId: `told-${projectId}`, ...counts },
  });
});

// Proves N1.
it('a receiver that does not answer delays no result; what it refuses comes again under the same id, when it asks for it, and 410 ends it', async () => {
  const held: Received[] = [];
  const statuses = [503, 302, 410];
  const { environment, told } = await opened((received) => {
    const status = held.length > 0 ? statuses.shift() : undefined;
    if (status === undefined) held.push(received);
    else received.response.writeHead(status, { 'retry-after': '1', location: '/elsewhere' }).end();
  });
  const dead = await environment.follow({}, SWIFT);
  await eventually('the receiver is asked', () => held.length > 0);
  expect((await dead.result()).status).toBe('completed');

  const following = await environment.follow({}, SWIFT);
  await following.result();
  const attempts = await told(following.handle.workflowId, 3);
  const [id = ''] = new Set(attempts.map((attempt) => attempt.id));
  expect(attempts.map((attempt) => attempt.id)).toEqual([id, id, id]);
  const notice = environment.client.workflow.getHandle(id);
  await expect(notice.result()).rejects.toMatchObject({
    cause: { cause: { type: 'ReceiverGone', message: 'the receiver answered 410' } },
  });
  for (const { response } of held) response.writeHead(204).end();
});
