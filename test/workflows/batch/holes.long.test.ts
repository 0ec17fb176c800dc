import { describe, expect, it } from '@jest/globals';
import type { Payload } from '@temporalio/common';
import { TestBatch } from '../../harness/test-batch';
import { Environment } from '../../harness/environment';
import { eventually } from '../../../tools/lib/eventually';
import { ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { Operator } from '../../harness/operator';
import { resetToTask, workflowTasks } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { newBatch } = sharedEnvironment();

/** The message of an item. */
const FIRST = 'the first message';

/** After so long the first round is due. A permission to start items lasts ten seconds. */
const ROUND_MS = 5_000;

/** What the simulation takes for granted of the server. */
describe('a batch', () => {
  // Proves B4.
  it.concurrent(
    'whose activity is paused when it has a round to tell starts nothing more, and says so',
    async () => {
      let passed = 0;
      // After the batch's own input it is the start of the follow-up that has the message.
      const encode = async (payloads: Payload[]) => {
        if (payloads.some(({ data }) => Buffer.from(data ?? []).includes(FIRST)) && (passed += 1) === 2) {
          const dueAt = Date.now() + ROUND_MS;
          await eventually('a round is due', () => Promise.resolve(Date.now() > dueAt));
          await operator.pause(workflowId, 'runItems');
        }
        return payloads;
      };
      const payloadCodecs = [{ encode, decode: (payloads: Payload[]) => Promise.resolve(payloads) }];
      const environment = await Environment.open({ dataConverter: { payloadCodecs } });
      const operator = new Operator(environment.client);
      const batch = new TestBatch(environment);
      const { workflowId } = batch.workflow;
      for (const prompt of [FIRST, 'another message']) batch.addItem(ENDLESS_TURN, { prompt });
      await batch.startWithInlineItems({ batchId: batch.batchId, concurrency: 1 });
      await batch.waitUntilSent(1);
      batch.endTurns();
      const pending = await eventually('the attempt has ended', async () => {
        const { raw } = await batch.workflow.describe();
        return raw.pendingActivities?.find(
          ({ activityType, attempt }) => activityType?.name === 'runItems' && attempt === 2,
        );
      });
      expect(pending).toMatchObject({ paused: true });
      expect((await batch.handle.progress()).message).toContain('paused its activity');
      await operator.unpause(workflowId, 'runItems');
      await batch.waitUntilSent(2);
      expect((await batch.finish()).summary).toMatchObject({ byStatus: { completed: 2 } });
      await environment.close();
    },
  );

  // Proves B11, P4.
  it.concurrent.each<[string, (batch: TestBatch) => Promise<unknown>]>([
    ['is reset', async ({ workflow }) => resetToTask(workflow, (await workflowTasks(workflow)).at(-1))],
    [
      'has its activity completed by hand',
      ({ environment, workflow }) => {
        const operator = new Operator(environment.client);
        return eventually('it is', () => operator.complete(workflow.workflowId, 'runItems', '{}'));
      },
    ],
  ])('that %s ends as incomplete, and goes on', async (_, happens) => {
    const batch = await newBatch(3, ENDLESS_TURN);
    await batch.startUntilSent(1, { concurrency: 1 });
    await batch.waitForProgress(({ open }) => open === 1);
    await happens(batch);
    expect(await batch.handle.result()).toMatchObject({ state: 'incomplete' });
    await batch.startUntilSent(3, { concurrency: 3 });
    expect(await batch.finish()).toMatchObject({ state: 'done', summary: { byStatus: { completed: 3 } } });
    expect(batch.messageCounts()).toEqual([1, 1, 1]);
  });

  // Proves B4.
  it.concurrent('that no worker takes up says so', async () => {
    const { environment, batches, batchId, requests } = await newBatch(1);
    const taskQueue = `nobody-${batchId}`;
    const workflowId = `follow-up-batch:${batchId}`;
    const args = [{ items: requests }];
    const waiting = await environment.client.workflow.start('followUpBatch', { workflowId, taskQueue, args });
    expect(await batches.getHandle(batchId).progress()).toMatchObject({
      summary: null,
      message: expect.stringContaining(`no worker polls the task queue "${taskQueue}"`),
    });
    await waiting.terminate();
  });
});
