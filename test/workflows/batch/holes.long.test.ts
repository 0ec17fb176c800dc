import { describe, expect, it } from '@jest/globals';
import { type BatchOfTest, deleteWorkflow, forget, LARGE, REJECTED_ONCE } from '../../harness/batch-of-test';
import { eventually } from '../../harness/eventually';
import { ENDLESS } from '../../harness/following';
import { listed } from '../../harness/listed';
import { resetBefore, resetToTask, workflowTasks } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { newBatch } = sharedEnvironment();

async function retryItem(batch: BatchOfTest, index: number): Promise<void> {
  const { workflowId } = await batch.itemHandle(index);
  await batch.environment.followUps.getHandle(workflowId).retry();
}

describe('an item', () => {
  // Proves B5.
  it.concurrent('that was delivered by a retry of its own and then forgotten is not sent again', async () => {
    const batch = await newBatch();
    batch.add({}, {}, REJECTED_ONCE);
    batch.add({}, {}, { ...REJECTED_ONCE, times: 2 });
    await batch.start();
    await batch.handle.result();
    await retryItem(batch, 0);
    const item = await batch.itemHandle(0);
    await item.result();
    await forget(item);
    await batch.handle.retry();
    const summary = { settled: 2, byFailure: { gone: 1, FollowUpRejected: 1 } };
    expect(await batch.handle.result()).toMatchObject({ state: 'done', summary });
    expect(batch.messages()).toEqual([2, 2]);
  });

  // Proves B6.
  it.concurrent('that runs again by a retry of its own keeps the next one of its job waiting', async () => {
    const batch = await newBatch();
    const key = batch.add(ENDLESS, { prompt: 'first' }, REJECTED_ONCE);
    batch.again(key, { prompt: 'second' });
    await batch.start({ concurrency: 1, tolerate: { items: 0 } });
    expect(await batch.handle.result()).toMatchObject({ state: 'tolerance-exceeded' });
    await retryItem(batch, 0);
    await batch.sent(1);
    await batch.start({ tolerate: { percent: 100 } });
    await batch.progressWhen(({ open }) => open === 1);
    const texts = () => batch.posts(key).map(({ prompt }) => prompt?.text);
    expect(texts()).toEqual(['first', 'first']);
    batch.endTurn(key);
    await batch.sent(2);
    expect(texts()).toEqual(['first', 'first', 'second']);
    const summary = { byStatus: { completed: 2 }, byFailure: {} };
    expect(await batch.finish()).toMatchObject({ state: 'done', summary });
  });

  // Proves B6.
  it.concurrent('is not sent into the turn of a later one that somebody else has started', async () => {
    const batch = await newBatch();
    const key = batch.add(ENDLESS, { prompt: 'first' });
    batch.again(key, { prompt: 'second', requestId: 'theirs' });
    const foreign = await batch.environment.send({ ...key, prompt: 'second', requestId: 'theirs' });
    await batch.sent(1);
    await batch.start();
    const fence = await newBatch(1);
    await fence.start();
    await fence.handle.result();
    expect(batch.posts(key)).toHaveLength(1);
    batch.endTurn(key);
    await foreign.handle.result();
    await batch.sent(2);
    expect(batch.posts(key).map(({ prompt }) => prompt?.text)).toEqual(['second', 'first']);
    expect((await batch.finish()).summary).toMatchObject({ byStatus: { completed: 2 } });
  });

  // Proves B10.
  it.concurrent('that is left running has not ended for the next run', async () => {
    const batch = await newBatch();
    const key = batch.add(ENDLESS, { prompt: 'first', requestId: 'theirs' });
    batch.again(key, { prompt: 'second' });
    const foreign = await batch.environment.send({ ...key, prompt: 'first', requestId: 'theirs' });
    await batch.sent(1);
    await batch.start();
    await batch.progressWhen(({ open }) => open === 1);
    const summary = { settled: 1, byFailure: { 'left-running': 1 } };
    expect(await batch.cancel({ followUps: true })).toMatchObject({ state: 'cancelled', summary });
    expect(await batch.handle.settled()).toMatchObject([{ outcome: 'left-running' }]);
    expect((await foreign.handle.describe()).status.name).toBe('RUNNING');
    await batch.start();
    await batch.progressWhen(({ open }) => open === 1);
    expect(batch.posts(key)).toHaveLength(1);
    batch.endTurn(key);
    await batch.sent(2);
    expect((await batch.finish()).summary).toMatchObject({ byStatus: { completed: 2 } });
  });

  // Proves B7.
  it.concurrent('whose name a foreign client has given to another message is a conflict', async () => {
    const batch = await newBatch();
    const key = batch.add(ENDLESS, { requestId: 'mine', prompt: 'Ours.' });
    const foreign = await batch.environment.send({ ...key, requestId: 'mine', prompt: 'Theirs.' });
    await batch.sent(1);
    await batch.start();
    await batch.handle.result();
    const ended = [{ outcome: 'conflict', delivery: 'not-sent' }];
    expect(await batch.handle.settled()).toMatchObject(ended);
    expect(await batch.handle.retry()).toBeNull();
    expect(batch.posts().map(({ prompt }) => prompt?.text)).toEqual(['Theirs.']);
    await foreign.handle.terminate();
  });

  // Proves B5.
  it.concurrent('that is deleted while it runs is gone, and the batch ends', async () => {
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

  // Proves B9.
  it.concurrent('has one fate, whatever is typed after a cancelled batch', async () => {
    const batch = (await newBatch(1, ENDLESS)).addMany(7);
    await batch.startUntilSent(1, { concurrency: 1 });
    await batch.cancel({ followUps: true });
    expect(await batch.handle.retry()).toMatchObject({ attached: false });
    const summary = { settled: 8, byStatus: { completed: 7 }, byFailure: { cancelled: 1 } };
    expect(await batch.handle.result()).toMatchObject({ summary });
    expect(await batch.start()).toMatchObject({ attached: 'ended' });
    expect(await batch.handle.retry()).toBeNull();
    expect(batch.messages()).toEqual(Array(8).fill(1));
  });
});

describe('a batch', () => {
  // Proves B11.
  it.concurrent.each(['start', 'later'])(
    'that is reset ends as incomplete, and goes on: %s',
    async (point) => {
      const batch = await newBatch(3, ENDLESS);
      await batch.startUntilSent(1, { concurrency: 1 });
      await batch.progressWhen(({ open }) => open === 1);
      if (point === 'start') await resetBefore('start', batch.workflow);
      else await resetToTask(batch.workflow, (await workflowTasks(batch.workflow)).at(-1));
      expect(await batch.handle.result()).toMatchObject({ state: 'incomplete' });
      await batch.startUntilSent(3, { concurrency: 3 });
      expect(await batch.finish()).toMatchObject({ state: 'done', summary: { byStatus: { completed: 3 } } });
      expect(batch.messages()).toEqual([1, 1, 1]);
    },
  );

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
    const { client } = batch.environment;
    const activity = { namespace: client.options.namespace, execution: { workflowId }, type: 'runItems' };
    await client.workflowService.pauseActivity(activity);
    await eventually('it says so', async () =>
      ((await batch.handle.progress()).trouble ?? '').includes('paused its activity'),
    );
    await client.workflowService.unpauseActivity(activity);
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
  it.concurrent.each([
    { input: {}, problem: /items: must be given, or chunks/ },
    { input: { items: [{ projectId: 'p' }] }, problem: /item 1: jobId: is missing/ },
    { input: { items: [], concurrency: 0 }, problem: /concurrency: must be a whole number from 1 to 1000/ },
  ])('that another client has started with $input is refused', async ({ input, problem }) => {
    const batch = await newBatch();
    const handle = await batch.startWithItems({ items: undefined, ...input } as object);
    await expect(handle.result()).rejects.toMatchObject({
      cause: { type: 'InvalidBatch', message: expect.stringMatching(problem) },
    });
  });
});
