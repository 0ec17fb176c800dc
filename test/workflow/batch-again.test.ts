import { describe, expect, it } from '@jest/globals';
import { ConflictError } from '../../src/client';
import { BATCH_WORKFLOW, type BatchInput } from '../../src/core/batch-workflows';
import { BatchOfTest, endless } from '../harness/batch-of-test';
import { Environment } from '../harness/environment';
import { eventually } from '../harness/eventually';
import { Operator } from '../harness/operator';
import { sharedEnvironment } from '../harness/shared-environment';

const open = sharedEnvironment({ sandbox: { turnMs: 500 }, lookEveryMs: 1_000 });

/** Two such messages don't fit into one page. */
const LARGE = 'x'.repeat(256 * 1_024);

/** The follow-ups of a batch that run, by the server's list. */
async function running(batch: BatchOfTest): Promise<string[]> {
  const query = `FollowUpBatch = '${batch.batchId}' AND WorkflowType = 'followUp' AND ExecutionStatus = 'Running'`;
  const ids: string[] = [];
  for await (const { workflowId } of batch.environment.client.workflow.list({ query })) ids.push(workflowId);
  return ids;
}

async function runningAre(batch: BatchOfTest, count: number): Promise<void> {
  await eventually(`${count} follow-ups run`, async () => (await running(batch)).length === count);
}

/** Starts a batch as a foreign client or a schedule does: its items are in its input. */
async function startForeign(batch: BatchOfTest, input: Partial<BatchInput> = {}) {
  const { items } = await batch.batches.check(batch.requests, { batchId: batch.batchId });
  return batch.environment.client.workflow.start(BATCH_WORKFLOW, {
    workflowId: `follow-up-batch:${batch.batchId}`,
    taskQueue: batch.environment.taskQueue,
    args: [{ items, ...input }],
  });
}

async function cancelled(batch: BatchOfTest): Promise<void> {
  await batch.handle.cancel();
  await batch.handle.result();
}

describe('a batch that runs again', () => {
  it.concurrent('has no more open than its concurrency, those of the earlier run included', async () => {
    const batch = new BatchOfTest(await open());
    const jobs = Array.from({ length: 8 }, () => batch.add(endless, { prompt: LARGE, deadline: '3m' }));
    await batch.start({ concurrency: 3 });
    await batch.sent(3);
    await cancelled(batch);
    // The pages that the first run had begun are not the first ones to arrive.
    await batch.start();
    const { concurrency } = await batch.progressWhen(
      ({ open: count, pages }) => count === 3 && pages.handedOver === pages.total,
    );
    expect(concurrency).toBe(3);
    expect(await running(batch)).toHaveLength(3);
    expect(batch.posts()).toHaveLength(3);
    for (const key of jobs) batch.environment.sandbox.changeJob(key, { status: 'failed' });
    // Each of the others gets its turn when a place is free.
    await batch.sent(6);
    await runningAre(batch, 3);
    for (const key of jobs) batch.environment.sandbox.changeJob(key, { status: 'failed' });
    await batch.sent(8);
    for (const key of jobs) batch.environment.sandbox.changeJob(key, { status: 'failed' });
    expect((await batch.handle.result()).summary).toMatchObject({ settled: 8 });
    expect(batch.messages()).toEqual(Array(8).fill(1));
  });

  it.concurrent('and is cancelled with its follow-ups ends those that have no place in it', async () => {
    const batch = new BatchOfTest(await open());
    for (let item = 0; item < 3; item += 1) batch.add(endless, { prompt: LARGE });
    await batch.start({ concurrency: 3 });
    await batch.sent(3);
    await cancelled(batch);
    await batch.start({ concurrency: 1 });
    await runningAre(batch, 3);
    expect(await batch.handle.cancel({ followUps: true })).toBe(3);
    await batch.handle.result();
    await runningAre(batch, 0);
  });

  it.concurrent('ends what it has open when it is cancelled with its follow-ups after its end', async () => {
    const batch = new BatchOfTest(await open());
    for (let item = 0; item < 3; item += 1) batch.add(endless);
    const { workflowId } = await batch.start({ concurrency: 2 });
    await batch.sent(2);
    await cancelled(batch);
    await runningAre(batch, 2);
    expect(await batch.handle.cancel({ followUps: true })).toBe(2);
    await runningAre(batch, 0);
    expect(await batch.handle.cancel({ followUps: true })).toBe(0);
    // Its page still runs, and has places, when the batch is terminated.
    await batch.start({ concurrency: 3 });
    await batch.sent(3);
    await batch.environment.client.workflow.getHandle(workflowId).terminate();
    await batch.handle.cancel({ followUps: true });
    await runningAre(batch, 0);
    expect(batch.posts()).toHaveLength(3);
  });

  it.concurrent.each([
    ['in one page', 'Rebase.'],
    ['in a chain of pages', LARGE.slice(10)],
  ])('never has two of one job open, %s', async (_, prompt) => {
    const batch = new BatchOfTest(await open());
    const { sandbox } = batch.environment;
    const key = batch.add({ turns: [{ durationMs: null }, { durationMs: 300 }] }, { prompt: `1 ${prompt}` });
    batch.again(key, { prompt: `2 ${prompt}` });
    sandbox.setFault({
      name: 'status',
      ...key,
      operation: 'message',
      times: 1,
      parameters: { code: 422 },
    });
    await batch.start();
    // The first is rejected, the second open.
    await sandbox.journal.waitFor({ ...key, operation: 'message', processed: true });
    await batch.progressWhen(({ settled, open: count }) => settled === 1 && count === 1);
    await cancelled(batch);
    await batch.handle.retry();
    await batch.progressWhen(({ open: count, pages }) => count === 1 && pages.handedOver === pages.total);
    // Longer than an item takes that has a place.
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(await running(batch)).toHaveLength(1);
    expect(batch.posts(key)).toHaveLength(2);
    sandbox.changeJob(key, { status: 'completed' });
    expect((await batch.handle.result()).summary).toMatchObject({ byStatus: { completed: 2 } });
    expect(batch.posts(key).map(({ prompt: sent }) => sent?.text[0])).toEqual(['1', '2', '1']);
  });

  it.concurrent('asks the server although reads of jobs are held back by a limit', async () => {
    const environment = await Environment.open({ sandbox: { turnMs: 500 } });
    const batch = new BatchOfTest(environment);
    for (let item = 0; item < 4; item += 1) batch.add(endless, { prompt: LARGE });
    await batch.start({ concurrency: 4 });
    await batch.sent(4);
    await cancelled(batch);
    const operator = new Operator(environment.client);
    await operator.limit(environment.taskQueues.read, 0.01);
    try {
      await batch.start();
      await batch.progressWhen(({ open: count }) => count === 4);
      expect(await batch.handle.cancel({ followUps: true })).toBe(4);
      expect(await batch.handle.result()).toMatchObject({ state: 'cancelled', summary: { settled: 4 } });
    } finally {
      await environment.close();
    }
  });

  it.concurrent(
    'keeps its concurrency and its tolerance in a retry, unless it is told otherwise',
    async () => {
      const batch = new BatchOfTest(await open());
      const jobs = Array.from({ length: 3 }, () => batch.add(endless));
      await batch.start({ concurrency: 2, tolerate: { items: 1 } });
      await batch.sent(2);
      await batch.handle.setConcurrency(1);
      await batch.handle.cancel({ followUps: true });
      await batch.handle.result();
      // Two were cancelled, which is more than is tolerated; both messages had arrived.
      await batch.handle.retry();
      expect(await batch.handle.result()).toMatchObject({ state: 'tolerance-exceeded' });
      expect((await batch.handle.describe()).pages).toMatchObject({ concurrency: 1, tolerate: { items: 1 } });
      await batch.handle.retry({ tolerate: { items: 2 } });
      await batch.sent(3);
      for (const key of jobs) batch.environment.sandbox.changeJob(key, { status: 'completed' });
      expect(await batch.handle.result()).toMatchObject({ state: 'done', summary: { settled: 3 } });
    },
  );
});

describe('a batch that is named by its workflow id', () => {
  it.concurrent('is that batch, also for the same file', async () => {
    const batch = new BatchOfTest(await open());
    batch.add(endless);
    batch.add(endless);
    const { workflowId } = await batch.start();
    await batch.sent(2);
    const again = await batch.batches.start(batch.requests, { batchId: workflowId });
    expect(again).toMatchObject({ batchId: batch.batchId, workflowId, attached: 'running' });
    batch.endTurns();
    expect(await batch.handle.result()).toMatchObject({ state: 'done', summary: { settled: 2 } });
    expect(batch.messages()).toEqual([1, 1]);
  });
});

describe('a batch of another client', () => {
  it.concurrent('is compared with the file that is given its id', async () => {
    const batch = new BatchOfTest(await open());
    batch.add(endless);
    await startForeign(batch);
    await batch.sent(1);
    expect(await batch.start()).toMatchObject({ attached: 'running' });
    batch.add();
    await expect(batch.start()).rejects.toBeInstanceOf(ConflictError);
    batch.endTurns();
    await batch.handle.result();
    await expect(batch.start()).rejects.toBeInstanceOf(ConflictError);
    expect(batch.messages()).toEqual([1, 0]);
  });
});
