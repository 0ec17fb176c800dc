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

/** The message of the first item. */
const FIRST = 'the first message';

/** The next round is due after this time. A permission to start items lasts ten seconds. */
const ROUND_MS = 5_000;

/** The simulation assumes this behavior of the Temporal server, so these tests verify it with a real server. */
describe('a batch', () => {
  // Proves B4.
  it.concurrent('starts no further items while its activity is paused, and reports the pause', async () => {
    let payloadCount = 0;
    // The first payload with this message is the input of the batch, and the second one is the input of the follow-up.
    const encode = async (payloads: Payload[]) => {
      if (payloads.some(({ data }) => Buffer.from(data ?? []).includes(FIRST)) && (payloadCount += 1) === 2) {
        const dueAt = Date.now() + ROUND_MS;
        await eventually('the next round is due', () => Promise.resolve(Date.now() > dueAt));
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
    const pending = await eventually('the first attempt has ended', async () => {
      const { raw } = await batch.workflow.describe();
      return raw.pendingActivities?.find(
        ({ activityType, attempt }) => activityType?.name === 'runItems' && attempt === 2,
      );
    });
    expect(pending).toMatchObject({ paused: true });
    expect((await batch.handle.progress()).message).toContain('the activity runItems is paused');
    await operator.unpause(workflowId, 'runItems');
    await batch.waitUntilSent(2);
    expect((await batch.finish()).summary).toMatchObject({ byStatus: { completed: 2 } });
    await environment.close();
  });

  // Proves B11, P4.
  it.concurrent.each<[string, (batch: TestBatch) => Promise<unknown>]>([
    ['is reset', async ({ workflow }) => resetToTask(workflow, (await workflowTasks(workflow)).at(-1))],
    [
      'has an activity that another client completed',
      ({ environment, workflow }) => {
        const operator = new Operator(environment.client);
        return eventually('the activity is completed', () =>
          operator.complete(workflow.workflowId, 'runItems', '{}'),
        );
      },
    ],
  ])('that %s ends as incomplete, and a new start runs the remaining items', async (_, interrupt) => {
    const batch = await newBatch(3, ENDLESS_TURN);
    await batch.startUntilSent(1, { concurrency: 1 });
    await batch.waitForProgress(({ open }) => open === 1);
    await interrupt(batch);
    expect(await batch.handle.result()).toMatchObject({ state: 'incomplete' });
    await batch.startUntilSent(3, { concurrency: 3 });
    expect(await batch.finish()).toMatchObject({ state: 'done', summary: { byStatus: { completed: 3 } } });
    expect(batch.messageCounts()).toEqual([1, 1, 1]);
  });

  // Proves B4.
  it.concurrent('reports that no worker polls its task queue', async () => {
    const { environment, batches, batchId, requests } = await newBatch(1);
    const taskQueue = `unpolled-${batchId}`;
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
