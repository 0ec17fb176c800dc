import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { WorkflowFailedError } from '@temporalio/client';
import { Webhook } from 'standardwebhooks';
import type { Notification } from '../../src/contract/activities';
import { TestBatch, FASTEST_OPTIONS } from '../harness/test-batch';
import { Environment } from '../harness/environment';
import { eventually } from '../../tools/lib/eventually';
import { computeCost, type HistoryEvent } from '../../tools/lib/history-cost';
import { ENDLESS_TURN } from '../harness/follow-up-under-test';
import { resetToTask, workflowTasks } from '../harness/reset';

const newSecret = () => `whsec_${randomBytes(24).toString('base64')}`;
const RECEIVER_SECRET = newSecret();

/** The verified body and the `webhook-id` of each POST, in the order of arrival. */
const received: { readonly id: string; readonly notification: Notification }[] = [];
const held: ServerResponse[] = [];
const statuses = [503, 302, 410];

/** The receiver's response for notifications of these projects. All other notifications receive 204. */
const RESPONDERS: Partial<Record<string, (response: ServerResponse) => void>> = {
  held: (response) => held.push(response),
  rejected: (response) =>
    response.writeHead(statuses.shift() ?? 204, { 'retry-after': '1', location: '/elsewhere' }).end(),
};

/** The receiver uses the JavaScript library of Standard Webhooks, which throws if a signature is wrong. */
const server = createServer((request, response) => {
  void (async () => {
    const headers = request.headers as Record<string, string>;
    const notification = new Webhook(RECEIVER_SECRET).verify(await text(request), headers) as Notification;
    received.push({ id: headers['webhook-id'] ?? '', notification });
    const respond = RESPONDERS[String(notification.data.projectId)] ?? (() => response.writeHead(204).end());
    respond(response);
  })();
});

let environment: Environment;
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/follow-ups`;
  const secrets = { current: () => Promise.resolve(`${newSecret()},${RECEIVER_SECRET}`) };
  environment = await Environment.open({ notify: { url, secrets } });
});
afterAll(async () => {
  for (const response of held) response.writeHead(204).end();
  await environment.close();
  server.close().closeAllConnections();
});

/** Waits for the notifications of a follow-up or a batch. Returns them in the order of arrival. */
const waitForNotifications = (workflowId: string, count = 1) =>
  eventually(
    `the receiver has ${count} notifications of ${workflowId}`,
    () => received.filter(({ notification }) => notification.data.workflowId === workflowId),
    { until: ({ length }) => length >= count },
  );

it('sends a notification without the prompt when a follow-up ends, needs a decision or is cancelled, and when a batch ends', async () => {
  const following = await environment.follow({}, { ...FASTEST_OPTIONS, prompt: 'a secret wish' });
  const { id: jobId, prLink, receipt } = await following.result();
  const { workflowId } = following.handle;
  const [ended] = await waitForNotifications(workflowId);
  const { projectId } = following.key;
  const { requestId, evidence } = receipt;
  const { runId } = await following.handle.describe();
  const ids = { workflowId, runId, projectId, jobId, requestId, batchId: null };
  const job = { status: 'completed', prLink };
  const outcome = { outcome: 'completed', message: null, ...job, verdict: 'accepted', evidence };
  expect(ended?.notification).toEqual({
    type: 'follow-up.ended',
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
    data: { ...ids, ...outcome },
  });

  const lost = { name: 'processed-then-close', operation: 'message' } as const;
  const options = { ...FASTEST_OPTIONS, onUnknownDelivery: 'ask' } as const;
  const asking = await environment.follow({ status: 'active', ...ENDLESS_TURN }, options, lost);
  await waitForNotifications(asking.handle.workflowId);
  const tasks = await eventually(
    'the notification workflow has started',
    () => workflowTasks(asking.handle),
    {
      until: ({ length }) => length > 2,
    },
  );
  // The history of the run that a reset makes has the notification, so the notification is not sent again.
  await (await resetToTask(asking.handle, tasks.at(-1))).cancel();
  const both = await waitForNotifications(asking.handle.workflowId, 2);
  expect(both.map(({ notification: { type, data } }) => ({ type, data }))).toMatchObject([
    {
      type: 'follow-up.needs-decision',
      data: {
        ...{ outcome: null, verdict: 'unknown', status: 'active' },
        message: expect.stringMatching(/Reading the job can't show whether the message arrived/),
      },
    },
    {
      type: 'follow-up.ended',
      data: {
        ...{ outcome: 'cancelled', verdict: 'unknown' },
        message: expect.stringMatching(/^The follow-up was cancelled\. It is unknown/),
      },
    },
  ]);
  const [asked, cancelled] = both.map(({ notification }) => notification.data.runId);
  expect(asked).not.toBe(cancelled);

  // A run that a reset made after the notification of the end has the same failure as the first run.
  const { handle } = await environment.follow({}, FASTEST_OPTIONS, { name: 'not-found' });
  await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'JobNotFound' } });
  const [notFound] = await waitForNotifications(handle.workflowId);
  const failure: unknown = await handle.result().catch((error: unknown) => error);
  const { cause } = failure as WorkflowFailedError;
  expect(notFound?.notification.data).toMatchObject({ outcome: 'JobNotFound', message: cause?.message });
  const resetRun = await resetToTask(handle, (await workflowTasks(handle)).at(-1));
  await expect(resetRun.result()).rejects.toMatchObject({ cause: { type: 'JobNotFound' } });

  const batch = new TestBatch(environment).addItems(2);
  const [batchEnded] = await waitForNotifications((await batch.start()).workflowId);
  const counts = { items: 2, ended: 2, unknownDeliveries: 0 };
  const { runId: batchRunId } = await batch.workflow.describe();
  expect(batchEnded?.notification).toMatchObject({
    type: 'follow-up-batch.ended',
    data: { batchId: batch.batchId, runId: batchRunId, outcome: 'done', message: null, ...counts },
  });
});

it('the outcome and the message in the notification of a batch are the state and the message that the client reports', async () => {
  const batch = new TestBatch(environment);
  batch.addItem({}, {}, { name: 'not-found' });
  const [ended] = await waitForNotifications((await batch.start({ maxFailures: { items: 0 } })).workflowId);
  const { state, message } = await batch.handle.result();
  expect(state).toBe('max-failures-exceeded');
  expect(ended?.notification.data).toMatchObject({ outcome: state, message });
});

// Proves N1.
it('a receiver without a response does not delay a result; a rejected notification is sent again with the same ID until the receiver returns 410', async () => {
  const unconfirmed = await environment.follow({ projectId: 'held' }, FASTEST_OPTIONS);
  await eventually('the receiver holds a notification', () => held.length > 0);
  expect((await unconfirmed.result()).status).toBe('completed');

  const rejected = await environment.follow({ projectId: 'rejected' }, FASTEST_OPTIONS);
  const [first, ...others] = await waitForNotifications(rejected.handle.workflowId, 3);
  const id = first?.id ?? '';
  expect(others.map((other) => other.id)).toEqual([id, id]);
  const notification = environment.client.workflow.getHandle(id);
  await expect(notification.result()).rejects.toMatchObject({
    cause: { cause: { type: 'ReceiverGone', message: 'the receiver returned 410' } },
  });
});

// docs/notifications.md and docs/batches.md state these numbers.
it('costs one more workflow with 11 events for each item of a batch and for the batch', async () => {
  const batch = new TestBatch(environment).addItems(2);
  await batch.start();
  await batch.handle.result();
  const items = await batch.itemIds();
  const workflowIds = [...items, `follow-up-batch:${batch.batchId}`];
  const notifications = await Promise.all(workflowIds.map((workflowId) => waitForNotifications(workflowId)));
  const { workflow } = environment.client;
  const costs = await Promise.all(
    notifications.flat().map(async ({ id }) => {
      const handle = workflow.getHandle(id);
      await handle.result();
      return computeCost((await handle.fetchHistory()).events ?? []);
    }),
  );
  const cost = { events: 11, workflowTasks: 2, actions: 2 };
  expect(costs).toMatchObject([cost, cost, cost]);
  const { events } = await workflow.getHandle(items[0] ?? '').fetchHistory();
  const isOfChild = ({
    startChildWorkflowExecutionInitiatedEventAttributes,
    childWorkflowExecutionStartedEventAttributes,
  }: HistoryEvent) =>
    startChildWorkflowExecutionInitiatedEventAttributes ?? childWorkflowExecutionStartedEventAttributes;
  expect(events?.filter(isOfChild)).toHaveLength(2);
});
