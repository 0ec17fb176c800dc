import { describe, expect, it } from '@jest/globals';
import { ConflictError } from '../../../src/client';
import { type BatchOfTest, LARGE, REJECTED_ONCE } from '../../harness/batch-of-test';
import { eventually } from '../../harness/eventually';
import type { JobKey } from '../../../sandbox';
import { ENDLESS } from '../../harness/following';
import { sharedEnvironment } from '../../harness/shared-environment';

const { newBatch } = sharedEnvironment();

async function runningAre(batch: BatchOfTest, count: number): Promise<void> {
  await eventually(`${count} follow-ups run`, async () => (await batch.running()).length === count);
}

describe('a batch that runs again', () => {
  // Proves B9.
  it.concurrent('has no more open than its concurrency, those of the earlier run included', async () => {
    const batch = await newBatch(5, ENDLESS, { prompt: LARGE });
    await batch.startUntilSent(2, { concurrency: 2 });
    await batch.cancel();
    await batch.start();
    const { concurrency } = await batch.progressWhen(({ open: count }) => count === 2);
    expect(concurrency).toBe(2);
    expect(batch.posts()).toHaveLength(2);
    batch.endTurns('failed');
    // Each of the others gets its turn when a place is free.
    await batch.sent(4);
    await batch.progressWhen(({ open: count, settled }) => count === 2 && settled === 2);
    expect(batch.posts()).toHaveLength(4);
    batch.endTurns('failed');
    await batch.sent(5);
    expect((await batch.finish()).summary).toMatchObject({ settled: 5 });
    expect(batch.messages()).toEqual(Array(5).fill(1));
  });

  // Proves B10.
  it.concurrent('and is cancelled with its follow-ups ends those that have no place in it', async () => {
    const batch = await newBatch(3, ENDLESS, { prompt: LARGE });
    await batch.startUntilSent(3, { concurrency: 3 });
    await batch.cancel();
    await batch.start({ concurrency: 1 });
    await runningAre(batch, 3);
    expect(await batch.handle.cancel({ followUps: true })).toBe(3);
    await batch.handle.result();
    await runningAre(batch, 0);
  });

  // Proves B10.
  it.concurrent('ends what it has open when it is cancelled with its follow-ups after its end', async () => {
    const batch = await newBatch(3, ENDLESS);
    await batch.startUntilSent(2, { concurrency: 2 });
    await batch.cancel();
    await runningAre(batch, 2);
    expect(await batch.handle.cancel({ followUps: true })).toBe(2);
    await runningAre(batch, 0);
    expect(await batch.handle.cancel({ followUps: true })).toBe(0);
    // Its page still runs, and has places, when the batch is terminated.
    await batch.startUntilSent(3, { concurrency: 3 });
    await batch.terminate();
    await batch.handle.cancel({ followUps: true });
    await runningAre(batch, 0);
    expect(batch.posts()).toHaveLength(3);
  });

  /** Two rejected items of another job: the batch that tries them again has long done so when the second is processed. */
  function addFence(batch: BatchOfTest, prompt: string): void {
    const other = batch.add({}, { prompt: `1 ${prompt}` }, { ...REJECTED_ONCE, times: 2 });
    batch.again(other, { prompt: `2 ${prompt}` });
  }

  const sentTo = (batch: BatchOfTest, key: JobKey) => batch.posts(key).map(({ prompt }) => prompt?.text[0]);

  // Proves B9.
  it.concurrent('never has two of one job open', async () => {
    const prompt = 'Rebase.';
    const batch = await newBatch();
    const turns = [{ durationMs: null }, { reads: 2 }];
    const key = batch.add({ turns }, { prompt: `1 ${prompt}` }, REJECTED_ONCE);
    batch.again(key, { prompt: `2 ${prompt}` });
    addFence(batch, prompt);
    await batch.start();
    // The first is rejected, the second open.
    await batch.progressWhen(({ settled, open: count }) => settled === 3 && count === 1);
    await batch.sent(1);
    await batch.cancel();
    await batch.handle.retry();
    await batch.sent(3);
    expect(sentTo(batch, key)).toEqual(['1', '2']);
    expect((await batch.finish()).summary).toMatchObject({ byStatus: { completed: 4 } });
    expect(sentTo(batch, key)).toEqual(['1', '2', '1']);
  });

  // Proves B9.
  it.concurrent('never has two of one job open, across parts of the items', async () => {
    const batch = await newBatch();
    const prompt = LARGE.slice(10);
    const key = batch.add(ENDLESS, { prompt: `1 ${prompt}` }, REJECTED_ONCE);
    for (const item of [2, 3]) batch.again(key, { prompt: `${item} ${prompt}` });
    addFence(batch, prompt);
    await batch.startUntilSent(1);
    batch.environment.sandbox.setFault({ ...REJECTED_ONCE, ...key });
    expect((await batch.finish()).summary).toMatchObject({ byFailure: { FollowUpRejected: 4 } });
    await batch.handle.retry();
    // Of the first and the third, which were rejected, the first is sent, and the third waits for its end.
    await batch.sent(4);
    expect(sentTo(batch, key)).toEqual(['1', '2', '3', '1']);
    await batch.handle.cancel({ followUps: true });
  });

  // Proves B9.
  it.concurrent('keeps its concurrency and tolerance in a retry, unless it is told otherwise', async () => {
    const batch = await newBatch(3, ENDLESS);
    await batch.startUntilSent(2, { concurrency: 2, tolerate: { items: 1 } });
    await batch.handle.setConcurrency(1);
    await batch.cancel({ followUps: true });
    // Two were cancelled, which is more than is tolerated; both messages had arrived.
    await batch.handle.retry();
    expect(await batch.handle.result()).toMatchObject({ state: 'tolerance-exceeded' });
    expect((await batch.handle.progress()).memo).toMatchObject({ concurrency: 1, tolerate: { items: 1 } });
    await batch.handle.retry({ tolerate: { items: 2 } });
    await batch.sent(3);
    expect(await batch.finish()).toMatchObject({ state: 'done', summary: { settled: 3 } });
  });
});

it.concurrent('a batch that is named by its workflow id is that batch, also for the same file', async () => {
  const batch = await newBatch(2, ENDLESS);
  const { workflowId } = await batch.startUntilSent(2);
  const again = await batch.batches.start(batch.requests, { batchId: workflowId });
  expect(again).toMatchObject({ batchId: batch.batchId, workflowId, attached: 'running' });
  expect(await batch.finish()).toMatchObject({ state: 'done', summary: { settled: 2 } });
  expect(batch.messages()).toEqual([1, 1]);
});

// Proves B7.
it.concurrent('a batch of another client is compared with the file that is given its id', async () => {
  const batch = await newBatch(1, ENDLESS);
  await batch.startWithItems();
  await batch.sent(1);
  expect(await batch.start()).toMatchObject({ attached: 'running' });
  batch.add();
  await expect(batch.start()).rejects.toBeInstanceOf(ConflictError);
  await batch.finish();
  await expect(batch.start()).rejects.toBeInstanceOf(ConflictError);
  expect(batch.messages()).toEqual([1, 0]);
});
