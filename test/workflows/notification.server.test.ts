import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import type { Notification } from '../../src/contract/activities';
import { TestBatch, FASTEST_OPTIONS } from '../harness/test-batch';
import { Environment } from '../harness/environment';
import { eventually } from '../../tools/lib/eventually';
import { ENDLESS_TURN } from '../harness/follow-up-under-test';
import { resetToTask, workflowTasks } from '../harness/reset';

const secret = () => `whsec_${randomBytes(24).toString('base64')}`;
const RECEIVERS = secret();

/** The POSTs in their order: the verified body and the `webhook-id` of each. */
const all: { readonly id: string; readonly notice: Notification }[] = [];
const held: ServerResponse[] = [];
const statuses = [503, 302, 410];

/** How the receiver answers what it is told of a project; 204 to all others. */
const ANSWERS: Partial<Record<string, (response: ServerResponse) => void>> = {
  held: (response) => held.push(response),
  refused: (response) =>
    response.writeHead(statuses.shift() ?? 204, { 'retry-after': '1', location: '/elsewhere' }).end(),
};

/** With the JavaScript library of Standard Webhooks, which throws where a signature is wrong. */
const server = createServer((request, response) => {
  void (async () => {
    const headers = request.headers as Record<string, string>;
    const notice = new Webhook(RECEIVERS).verify(await text(request), headers) as Notification;
    all.push({ id: headers['webhook-id'] ?? '', notice });
    const answer = ANSWERS[String(notice.data.projectId)] ?? (() => response.writeHead(204).end());
    answer(response);
  })();
});

let environment: Environment;
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/follow-ups`;
  const secrets = { current: () => Promise.resolve(`${secret()},${RECEIVERS}`) };
  environment = await Environment.open({ notify: { url, secrets } });
});
afterAll(async () => {
  for (const response of held) response.writeHead(204).end();
  await environment.close();
  server.close().closeAllConnections();
});

/** The notices of a follow-up or a batch, in the order of their arrival. */
const told = (workflowId: string, count = 1) =>
  eventually(
    'the receiver is told',
    () => all.filter(({ notice }) => notice.data.workflowId === workflowId),
    { until: ({ length }) => length >= count },
  );

it('the end of a follow-up, a need for a decision, a cancellation and the end of a batch are told, without the prompt', async () => {
  const following = await environment.follow({}, { ...FASTEST_OPTIONS, prompt: 'a secret wish' });
  const { id: jobId, prLink, receipt } = await following.result();
  const { workflowId } = following.handle;
  const [ended] = await told(workflowId);
  const { projectId } = following.key;
  const { requestId, evidence } = receipt;
  const named = { workflowId, projectId, jobId, requestId, batchId: null };
  const outcome = { outcome: 'completed', status: 'completed', prLink, verdict: 'accepted', evidence };
  expect(ended?.notice).toEqual({
    type: 'follow-up.ended',
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
    data: { ...named, ...outcome },
  });

  const lost = { name: 'processed-then-close', operation: 'message' } as const;
  const asked = { ...FASTEST_OPTIONS, onUnknownDelivery: 'ask' } as const;
  const asking = await environment.follow({ status: 'active', ...ENDLESS_TURN }, asked, lost);
  await told(asking.handle.workflowId);
  const tasks = await eventually('its notice has begun', () => workflowTasks(asking.handle), {
    until: ({ length }) => length > 2,
  });
  // The notice stays in the history of the run that a reset makes.
  await (await resetToTask(asking.handle, tasks.at(-1))).cancel();
  const both = await told(asking.handle.workflowId, 2);
  expect(both.map(({ notice: { type, data } }) => ({ type, data }))).toMatchObject([
    { type: 'follow-up.needs-decision', data: { outcome: null, verdict: 'unknown', status: 'active' } },
    { type: 'follow-up.ended', data: { outcome: 'cancelled', verdict: 'unknown' } },
  ]);

  // So is the end: a run that a reset has made decides as its history did.
  const { handle } = await environment.follow({}, FASTEST_OPTIONS, { name: 'not-found' });
  await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'JobNotFound' } });
  const again = await resetToTask(handle, (await workflowTasks(handle)).at(-1));
  await expect(again.result()).rejects.toMatchObject({ cause: { type: 'JobNotFound' } });

  const batch = new TestBatch(environment).addItems(2);
  const [ofBatch] = await told((await batch.start()).workflowId);
  const counts = { outcome: 'done', items: 2, ended: 2, unknownDeliveries: 0 };
  expect(ofBatch?.notice).toMatchObject({
    type: 'follow-up-batch.ended',
    data: { batchId: batch.batchId, ...counts },
  });
});

// Proves N1.
it('a receiver that does not answer delays no result; what it refuses comes again under the same id, and 410 ends it', async () => {
  const unheard = await environment.follow({ projectId: 'held' }, FASTEST_OPTIONS);
  await eventually('the receiver is asked', () => held.length > 0);
  expect((await unheard.result()).status).toBe('completed');

  const refused = await environment.follow({ projectId: 'refused' }, FASTEST_OPTIONS);
  const [first, ...others] = await told(refused.handle.workflowId, 3);
  const id = first?.id ?? '';
  expect(others.map((other) => other.id)).toEqual([id, id]);
  const notice = environment.client.workflow.getHandle(id);
  await expect(notice.result()).rejects.toMatchObject({
    cause: { cause: { type: 'ReceiverGone', message: 'the receiver returned 410' } },
  });
});
