import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { ConflictError } from '../../../src/client';
import { type BatchOfTest, LARGE, REJECTED_ONCE } from '../../harness/batch-of-test';
import { eventually } from '../../harness/eventually';
import { ENDLESS } from '../../harness/following';
import { Operator } from '../../harness/operator';
import { sharedEnvironment } from '../../harness/shared-environment';

const { newBatch } = sharedEnvironment({ sandbox: { turnMs: 500 }, lookEveryMs: 1_000 });
/** For limits on its queues. */
const { open: openLimited, newBatch: newLimitedBatch } = sharedEnvironment({ sandbox: { turnMs: 500 } });

async function runningAre(batch: BatchOfTest, count: number): Promise<void> {
  await eventually(`${count} follow-ups run`, async () => (await batch.running()).length === count);
}

describe('a batch that runs again', () => {
  it.concurrent('has no more open than its concurrency, those of the earlier run included', async () => {
    const batch = await newBatch(8, ENDLESS, { prompt: LARGE, deadline: '3m' });
    await batch.startUntilSent(3, { concurrency: 3 });
    await batch.cancel();
    // The pages that the first run had begun are not the first ones to arrive.
    await batch.start();
    const { concurrency } = await batch.progressWhen(
      ({ open: count, pages }) => count === 3 && pages.handedOver === pages.total,
    );
    expect(concurrency).toBe(3);
    expect(await batch.running()).toHaveLength(3);
    expect(batch.posts()).toHaveLength(3);
    batch.endTurns('failed');
    // Each of the others gets its turn when a place is free.
    await batch.sent(6);
    await runningAre(batch, 3);
    batch.endTurns('failed');
    await batch.sent(8);
    batch.endTurns('failed');
    expect((await batch.handle.result()).summary).toMatchObject({ settled: 8 });
    expect(batch.messages()).toEqual(Array(8).fill(1));
  });

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

  it.concurrent.each([
    ['in one page', 'Rebase.'],
    ['in a chain of pages', LARGE.slice(10)],
  ])('never has two of one job open, %s', async (_, prompt) => {
    const batch = await newBatch();
    const turns = [{ durationMs: null }, { durationMs: 300 }];
    const key = batch.add({ turns }, { prompt: `1 ${prompt}` }, REJECTED_ONCE);
    batch.again(key, { prompt: `2 ${prompt}` });
    await batch.start();
    // The first is rejected, the second open.
    await batch.sent(1);
    await batch.progressWhen(({ settled, open: count }) => settled === 1 && count === 1);
    await batch.cancel();
    await batch.handle.retry();
    await batch.progressWhen(({ open: count, pages }) => count === 1 && pages.handedOver === pages.total);
    // Longer than an item takes that has a place.
    await sleep(2_000);
    expect(await batch.running()).toHaveLength(1);
    expect(batch.posts(key)).toHaveLength(2);
    expect((await batch.finish()).summary).toMatchObject({ byStatus: { completed: 2 } });
    expect(batch.posts(key).map(({ prompt: sent }) => sent?.text[0])).toEqual(['1', '2', '1']);
  });

  it.concurrent('never has two of one job open, across a page that is done', async () => {
    const batch = await newBatch();
    const key = batch.add(ENDLESS, { prompt: `1 ${LARGE.slice(10)}` }, REJECTED_ONCE);
    for (const item of [2, 3]) batch.again(key, { prompt: `${item} ${LARGE.slice(10)}` });
    await batch.startUntilSent(1);
    batch.environment.sandbox.setFault({ ...REJECTED_ONCE, ...key });
    expect((await batch.finish()).summary).toMatchObject({ byFailure: { FollowUpRejected: 2 } });
    await batch.handle.retry();
    // Of the first and the third, which were rejected, the first is sent, and the third waits for its end.
    await batch.environment.sandbox.journal.waitFor({ ...key, operation: 'message' }, { atLeast: 4 });
    await sleep(2_000);
    expect(await batch.running()).toHaveLength(1);
    expect(batch.posts(key).map(({ prompt: sent }) => sent?.text[0])).toEqual(['1', '2', '3', '1']);
    await batch.handle.cancel({ followUps: true });
  });

  it.concurrent('asks the server although reads of jobs are held back by a limit', async () => {
    const batch = await newLimitedBatch(4, ENDLESS, { prompt: LARGE });
    await batch.startUntilSent(4, { concurrency: 4 });
    await batch.cancel();
    const { client, taskQueues } = await openLimited();
    await new Operator(client).limit(taskQueues.read, 0.01);
    await batch.start();
    await batch.progressWhen(({ open: count }) => count === 4);
    expect(await batch.handle.cancel({ followUps: true })).toBe(4);
    expect(await batch.handle.result()).toMatchObject({ state: 'cancelled', summary: { settled: 4 } });
  });

  it.concurrent('keeps its concurrency and tolerance in a retry, unless it is told otherwise', async () => {
    const batch = await newBatch(3, ENDLESS);
    await batch.startUntilSent(2, { concurrency: 2, tolerate: { items: 1 } });
    await batch.handle.setConcurrency(1);
    await batch.cancel({ followUps: true });
    // Two were cancelled, which is more than is tolerated; both messages had arrived.
    await batch.handle.retry();
    expect(await batch.handle.result()).toMatchObject({ state: 'tolerance-exceeded' });
    expect((await batch.handle.describe()).pages).toMatchObject({ concurrency: 1, tolerate: { items: 1 } });
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
