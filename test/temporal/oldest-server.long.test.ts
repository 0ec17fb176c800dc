import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { DataConverter, Payload } from '@temporalio/common';
import { checkServerVersion, OLDEST_SERVER_VERSION } from '../../src/temporal/server-version';
import type { DevServer } from '../../tools/lib/dev-server';
import { eventually } from '../../tools/lib/eventually';
import { Environment } from '../harness/environment';
import { ENDLESS_TURN, NOT_SENT_DELIVERY } from '../harness/follow-up-under-test';
import { startOldestServer } from '../harness/oldest-server';
import { Operator } from '../harness/operator';
import { resetToTask, workflowTasks } from '../harness/reset';
import { TestBatch } from '../harness/test-batch';
import { collectWorkflowIds } from '../harness/workflow-ids';

// Each feature of the Temporal server that the project uses works on the oldest supported version, as these tests show. The rules of
// the project do not depend on the version, so the other tests show them.

let server: DevServer;
let environment: Environment;
beforeAll(async () => {
  server = await startOldestServer();
  environment = await Environment.open({ address: server.address });
});
afterAll(async () => {
  await environment.close();
  await server.stop();
});

it('the server has the version that the worker and the client name as the oldest', async () => {
  expect(await checkServerVersion(environment.client.connection)).toBe(OLDEST_SERVER_VERSION);
});

it('a follow-up runs to its prLink, and lists find its outcome, its verdict and its evidence', async () => {
  const following = await environment.follow(
    { turn: { reads: 4 } },
    { polling: { initial: '200ms', timerPolls: 0 } },
  );
  const { status, prLink, receipt } = await following.result();
  expect({ status, prLink }).toEqual({ status: 'completed', prLink: expect.stringContaining('/pull/') });
  expect(receipt).toMatchObject({ evidence: 'seen-active', delivery: { verdict: 'accepted', sends: 1 } });
  const { projectId } = following.key;
  for (const outcome of ['completed', 'accepted', 'seen-active'])
    await eventually(`the list with the outcome ${outcome} has the follow-up`, async () =>
      (await collectWorkflowIds(environment.followUps.list({ projectId, outcome }))).includes(
        following.handle.workflowId,
      ),
    );
});

it('a running follow-up holds the job lock across a reset, and its next follow-up sends only after it has ended', async () => {
  const options = { whenActive: 'wait', maxStaleness: '1h', deadline: '3h' } as const;
  const first = await environment.follow(ENDLESS_TURN, options);
  await first.waitForProgress(({ phase }) => phase === 'watching');
  const resetRun = await resetToTask(first.handle, (await workflowTasks(first.handle)).at(-1));
  const second = await environment.send({ ...first.key, ...options });
  const blocked = `waiting for the job lock, which ${first.handle.workflowId} holds`;
  const isBlocked = () => second.waitForProgress(({ lastResponse }) => lastResponse === blocked);
  await isBlocked();
  expect(first.posts()).toHaveLength(1);
  await resetRun.terminate();
  first.changeJob({ status: 'completed' });
  await new Operator(environment.client).reset(second.handle.workflowId, 'waitForJobLock');
  await second.waitForRequest({ operation: 'message' }, { atLeast: 2 });
  await second.handle.terminate();
});

it('a send that is cancelled between two attempts was provably not sent', async () => {
  const pass = (payloads: Payload[]) => Promise.resolve(payloads);
  const dataConverter: DataConverter = {
    payloadCodecs: [
      {
        encode: pass,
        decode: (payloads) => {
          const isSend = payloads.some(({ data }) => Buffer.from(data ?? []).includes('"permittedRunId"'));
          return isSend ? Promise.reject(new Error('the codec fails')) : pass(payloads);
        },
      },
    ],
  };
  const failing = await Environment.open({ address: server.address, dataConverter });
  const following = await failing.follow(ENDLESS_TURN);
  await eventually('the send waits for its next attempt', async () => {
    const { raw } = await following.handle.describe();
    return raw.pendingActivities?.some(({ attempt }) => Number(attempt) > 1);
  });
  await following.handle.cancel();
  expect((await following.cancelledReceipt()).delivery).toEqual(NOT_SENT_DELIVERY);
  await failing.close();
});

it('a follow-up receives updates, and an operator’s decision lets it send the message again', async () => {
  const reset = { name: 'reset', operation: 'message', times: 1 } as const;
  const following = await environment.follow(ENDLESS_TURN, { onUnknownDelivery: 'ask' }, reset);
  const handle = environment.followUps.getHandle(following.handle.workflowId);
  await following.waitForProgress(({ phase }) => phase === 'needs-decision');
  expect((await handle.extendDeadline('2h')).phase).toBe('needs-decision');
  await handle.resolveDelivery('not-delivered');
  await following.waitForRequest({ operation: 'message' }, { atLeast: 2 });
  following.changeJob({ status: 'completed' });
  expect((await following.result()).receipt.delivery).toMatchObject({ verdict: 'accepted', sends: 2 });
});

it('a batch sends each message once, and lists the outcomes of its items', async () => {
  const batch = new TestBatch(environment).addItems(5);
  await batch.start();
  expect(await batch.handle.result()).toMatchObject({ summary: { byStatus: { completed: 5 } } });
  expect(environment.posts({ projectId: batch.projectId })).toHaveLength(5);
});
