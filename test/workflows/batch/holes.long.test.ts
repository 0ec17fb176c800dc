import { describe, expect, it } from '@jest/globals';
import { deleteWorkflow, LARGE } from '../../harness/batch-of-test';
import { eventually } from '../../harness/eventually';
import { ENDLESS } from '../../harness/following';
import { listed } from '../../harness/listed';
import { Operator } from '../../harness/operator';
import { resetToTask, workflowTasks } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { newBatch } = sharedEnvironment();

describe('a batch', () => {
  // Proves B5.
  it.concurrent('ends with an item that is deleted while it runs, and is gone', async () => {
    const batch = await newBatch(2, ENDLESS);
    await batch.startUntilSent(2);
    await batch.progressWhen(({ open }) => open === 2);
    await deleteWorkflow(await batch.itemHandle(0));
    await batch.progressWhen(({ settled }) => settled === 1);
    const summary = { settled: 2, byStatus: { completed: 1 }, byFailure: { gone: 1 } };
    expect(await batch.finish()).toMatchObject({ state: 'done', summary });
    expect((await batch.handle.settled()).map(({ outcome }) => outcome).sort()).toEqual([
      'completed',
      'gone',
    ]);
    expect(await batch.handle.retry()).toBeNull();
    expect(batch.messages()).toEqual([1, 1]);
  });

  // Proves B11.
  it.concurrent('that is reset ends as incomplete, and goes on', async () => {
    const batch = await newBatch(3, ENDLESS);
    await batch.startUntilSent(1, { concurrency: 1 });
    await batch.progressWhen(({ open }) => open === 1);
    await resetToTask(batch.workflow, (await workflowTasks(batch.workflow)).at(-1));
    expect(await batch.handle.result()).toMatchObject({ state: 'incomplete' });
    await batch.startUntilSent(3, { concurrency: 3 });
    expect(await batch.finish()).toMatchObject({ state: 'done', summary: { byStatus: { completed: 3 } } });
    expect(batch.messages()).toEqual([1, 1, 1]);
  });

  // Proves B3.
  it.concurrent('of large messages stores them, and lets the server forget them with it', async () => {
    const batch = await newBatch(5, {}, { prompt: LARGE });
    await batch.start();
    const { client } = batch.environment;
    const chunks = async (state: string) =>
      listed(
        client.workflow.list({
          query: `WorkflowType = 'followUpBatchItems' AND FollowUpBatch = '${batch.batchId}' AND ExecutionStatus = '${state}'`,
        }),
      );
    expect(await batch.handle.result()).toMatchObject({
      state: 'done',
      summary: { byStatus: { completed: 5 } },
    });
    await eventually('its chunks have ended', async () => (await chunks('Terminated')).length > 1);
    expect(await chunks('Running')).toEqual([]);
    expect(await batch.handle.settled()).toHaveLength(5);
    expect(batch.messages()).toEqual(Array(5).fill(1));
  });

  // Proves B4.
  it.concurrent('whose activity somebody has paused says so, and goes on when it may', async () => {
    const batch = await newBatch(2, ENDLESS);
    const { workflowId } = await batch.startUntilSent(1, { concurrency: 1 });
    const operator = new Operator(batch.environment.client);
    // Between two rounds none is pending.
    await eventually('it is paused', () => operator.pause(workflowId, 'runItems'));
    await eventually('it says so', async () =>
      ((await batch.handle.progress()).trouble ?? '').includes('paused its activity'),
    );
    await operator.unpause(workflowId, 'runItems');
    batch.endTurns();
    await batch.sent(2);
    expect((await batch.finish()).summary).toMatchObject({ byStatus: { completed: 2 } });
  });

  // Proves B4.
  it.concurrent(
    'is told by the server alone: its progress, its results, and that no worker is there',
    async () => {
      const batch = await newBatch(2);
      const nobody = `nobody-${batch.batchId}`;
      const { workflowId } = await batch.start();
      await batch.handle.result();
      expect(await batch.handle.settled()).toHaveLength(2);
      expect((await batch.handle.progress()).progress).toMatchObject({ settled: 2, open: 0 });
      const { client } = batch.environment;
      const waiting = await client.workflow.start('followUpBatch', {
        workflowId: `${workflowId}-waits`,
        taskQueue: nobody,
        args: [{ items: batch.requests }],
      });
      const report = await batch.batches.getHandle(waiting.workflowId).progress();
      expect(report).toMatchObject({
        progress: null,
        trouble: expect.stringContaining(`no worker polls the task queue "${nobody}"`),
      });
      await waiting.terminate();
    },
  );

  // Proves B7.
  it.concurrent('that another client has started with invalid items is refused', async () => {
    const batch = await newBatch();
    const handle = await batch.startWithItems({ items: [{ projectId: 'p' }] } as never);
    await expect(handle.result()).rejects.toMatchObject({
      cause: { type: 'InvalidBatch', message: expect.stringMatching(/item 1: jobId: is missing/) },
    });
  });
});
