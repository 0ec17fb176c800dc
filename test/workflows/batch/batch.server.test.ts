import { describe, expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import { ConflictError } from '../../../src/client';
import { followUpWorkflowId } from '../../../src/core/ids';
import { FOLLOW_UP_WORKFLOW } from '../../../src/core/names';
import { ENCRYPTING } from '../../harness/encryption';
import { ENDLESS } from '../../harness/following';
import { sharedEnvironment } from '../../harness/shared-environment';

const { newBatch } = sharedEnvironment();

const FAILS = { turn: { outcome: 'failed', reads: 2 } } as const;

describe('a batch', () => {
  it.concurrent('sends each item once, and its summary tells how they ended', async () => {
    const batch = (await newBatch(6)).addMany(1, FAILS);
    batch.again({ projectId: batch.projectId, jobId: 'nobody' });
    const started = await batch.start({ concurrency: 3 });
    expect(started).toMatchObject({ attached: false, items: 8 });
    const { state, summary } = await batch.handle.result();
    expect({ state, ...summary }).toMatchObject({
      state: 'done',
      batchId: batch.batchId,
      items: 8,
      settled: 8,
      byStatus: { completed: 6, failed: 1 },
      byFailure: { JobNotFound: 1 },
      byEvidence: { 'seen-active': 7 },
      unknownDeliveries: 0,
      firstFailures: [{ outcome: expect.any(String) }, { outcome: expect.any(String) }],
    });
    expect(batch.messages()).toEqual([...Array<number>(7).fill(1), 0]);
    const ends = await batch.handle.settled();
    expect(ends).toHaveLength(8);
    expect(ends.find(({ jobId }) => jobId === 'nobody')).toMatchObject({
      outcome: 'JobNotFound',
      delivery: 'not-sent',
      message: expect.stringContaining('Nothing was sent'),
    });
  });

  // Proves B5.
  it.concurrent('ends where another program has started an item that nobody can decode', async () => {
    const batch = await newBatch();
    const { projectId, jobId } = batch.add({}, { requestId: 'mine' });
    const { connection } = batch.environment.client;
    const workflowId = followUpWorkflowId(projectId, jobId, 'mine');
    const options = {
      workflowId,
      taskQueue: 'of another program',
      memo: { note: 'secret' },
      args: batch.requests,
    };
    await new Client({ connection, dataConverter: ENCRYPTING }).workflow.start(FOLLOW_UP_WORKFLOW, options);
    await batch.start();
    const summary = { byStatus: {}, byFailure: { broken: 1 } };
    expect(await batch.handle.result()).toMatchObject({ state: 'done', summary });
    const [end] = await batch.handle.settled();
    expect(end).toMatchObject({ delivery: null, message: expect.stringContaining("It can't be read") });
    expect(batch.posts()).toEqual([]);
  });

  // Proves B7.
  it.concurrent('of the same id and other items is refused, whoever has started it', async () => {
    const batch = await newBatch(1, ENDLESS);
    await batch.startWithItems();
    await batch.sent(1);
    expect(await batch.start()).toMatchObject({ attached: 'running' });
    const { batchId, requests } = batch;
    const slower = requests.map((request) => ({ ...request, settle: '77s' }) as const);
    const refused = batch.batches.start(slower, { batchId });
    await expect(refused).rejects.toThrow('exists with different items, options or order');
    await expect(refused).rejects.toBeInstanceOf(ConflictError);
    batch.add();
    await expect(batch.start()).rejects.toBeInstanceOf(ConflictError);
    await batch.finish();
    await expect(batch.start()).rejects.toBeInstanceOf(ConflictError);
    expect(batch.messages()).toEqual([1, 0]);
  });

  // Proves B9.
  it.concurrent('keeps its concurrency and tolerance in a retry, unless it is told otherwise', async () => {
    const batch = await newBatch(3, ENDLESS);
    await batch.startUntilSent(2, { concurrency: 2, tolerate: { items: 1 } });
    await batch.handle.setConcurrency(1);
    await batch.handle.cancel({ followUps: true });
    await batch.handle.result();
    // Two were cancelled, which is more than is tolerated; both messages had arrived.
    await batch.handle.retry();
    expect(await batch.handle.result()).toMatchObject({ state: 'tolerance-exceeded' });
    expect((await batch.handle.progress()).summary).toMatchObject({ concurrency: 1 });
    await batch.handle.retry({ tolerate: { items: 2 } });
    await batch.sent(3);
    expect(await batch.finish()).toMatchObject({ state: 'done', summary: { settled: 3 } });
  });

  // Proves B7.
  it.concurrent('that another client has started with invalid items is refused', async () => {
    const batch = await newBatch();
    const handle = await batch.startWithItems({ items: [{ projectId: 'p' }] } as never);
    await expect(handle.result()).rejects.toMatchObject({
      cause: { type: 'InvalidBatch', message: expect.stringMatching(/item 1: jobId: is missing/) },
    });
  });
});
