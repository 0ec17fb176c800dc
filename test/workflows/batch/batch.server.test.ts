import { describe, expect, it } from '@jest/globals';
import { ConflictError } from '../../../src/client';
import { followUpWorkflowId } from '../../../src/core/ids';
import { FOLLOW_UP_WORKFLOW } from '../../../src/core/names';
import { type BatchOfTest, REJECTED_ONCE } from '../../harness/batch-of-test';
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
  it.concurrent('ends where another program has ended an item with what nobody can decode', async () => {
    const batch = await newBatch();
    const { projectId, jobId } = batch.add({}, { requestId: 'mine' });
    await endUndecodably(batch, followUpWorkflowId(projectId, jobId, 'mine'));
    await batch.start();
    const summary = { byStatus: {}, byFailure: { broken: 1 } };
    expect(await batch.handle.result()).toMatchObject({ state: 'done', summary });
    const [end] = await batch.handle.settled();
    expect(end).toMatchObject({ delivery: null, message: expect.stringContaining("It can't be read") });
    expect(batch.posts()).toEqual([]);
  });

  it.concurrent('has no more follow-ups open than its concurrency', async () => {
    const batch = await newBatch(6, ENDLESS);
    await batch.startUntilSent(2, { concurrency: 2 });
    await batch.progressWhen(({ open: running }) => running === 2);
    expect(batch.posts()).toHaveLength(2);
    const [first] = batch.posts();
    batch.endTurn({ projectId: batch.projectId, jobId: first?.jobId ?? '' });
    await batch.sent(3);
    expect(await batch.handle.setConcurrency(6)).toMatchObject({ concurrency: 6 });
    await batch.sent(6);
    expect((await batch.finish()).summary).toMatchObject({ byStatus: { completed: 6 } });
  });

  it.concurrent('runs two items of one job one after the other, in order', async () => {
    const batch = await newBatch();
    const key = batch.add({}, { prompt: 'first' });
    batch.again(key, { prompt: 'second' });
    await batch.start();
    expect((await batch.handle.result()).summary).toMatchObject({ byStatus: { completed: 2 } });
    expect(batch.posts().map(({ prompt }) => prompt?.text)).toEqual(['first', 'second']);
    const [first, second] = await batch.handle.settled();
    expect(Date.parse(second?.settledAt ?? '')).toBeGreaterThan(Date.parse(first?.settledAt ?? ''));
  });

  // Proves B5.
  it.concurrent('counts an item that somebody terminated or cancelled, and starts the next', async () => {
    const batch = await newBatch(2, ENDLESS);
    batch.add();
    await batch.startUntilSent(1, { concurrency: 1 });
    await (await batch.itemHandle(0)).terminate('by an operator');
    await batch.sent(2);
    await (await batch.itemHandle(1)).cancel();
    const summary = { settled: 3, byStatus: { completed: 1 }, byFailure: { terminated: 1, cancelled: 1 } };
    expect(await batch.handle.result()).toMatchObject({ summary });
    const ends = await batch.handle.settled();
    expect(ends.map(({ outcome, delivery }) => [outcome, delivery])).toEqual([
      ['terminated', null],
      ['cancelled', 'accepted'],
      ['completed', 'accepted'],
    ]);
  });

  // Proves B8.
  it.concurrent('beyond its tolerance starts nothing more, lets the rest end, and fails', async () => {
    const batch = await newBatch();
    const slow = batch.add(ENDLESS);
    batch.addMany(10, FAILS);
    await batch.start({ concurrency: 2, tolerate: { items: 1 } });
    const ending = await batch.progressWhen(({ state }) => state === 'ending');
    expect(ending.message).toMatch(
      /2 items failed, more than the tolerance allows\. .*starts nothing unless its tolerance is raised/,
    );
    batch.endTurn(slow);
    expect(await batch.handle.result()).toMatchObject({
      state: 'tolerance-exceeded',
      message: expect.stringContaining('2 items failed, more than the tolerance allows.'),
      summary: { items: 11, byStatus: { failed: 2, completed: 1 } },
    });
    expect(batch.posts()).toHaveLength(3);
    expect(batch.posts(slow)).toHaveLength(1);
  });

  // Proves B9.
  it.concurrent('goes on when it is started again after a failure, and sends nothing twice', async () => {
    const batch = await newBatch(5, FAILS);
    await batch.start({ concurrency: 1, tolerate: { items: 1 } });
    await batch.handle.result();
    expect(batch.posts()).toHaveLength(2);
    // It keeps its tolerance unless it is told otherwise.
    await batch.start({ concurrency: 5 });
    const message = expect.stringContaining('starts nothing unless its tolerance is raised');
    expect(await batch.handle.result()).toMatchObject({ state: 'tolerance-exceeded', message });
    expect(batch.posts()).toHaveLength(2);
    expect(await batch.start({ concurrency: 5, tolerate: null })).toMatchObject({ attached: false });
    const summary = { settled: 5, byStatus: { failed: 5 } };
    expect(await batch.handle.result()).toMatchObject({ state: 'done', summary });
    expect(await batch.start()).toMatchObject({ attached: 'ended' });
    expect(batch.messages()).toEqual([1, 1, 1, 1, 1]);
  });

  // Proves B8.
  it.concurrent('counts earlier failures if started again, and goes on within its tolerance', async () => {
    const batch = (await newBatch(2, FAILS)).addMany(2, ENDLESS);
    await batch.startUntilSent(3, { concurrency: 1 });
    await batch.cancel();
    // One more than is tolerated: nothing further is sent, and the open one is awaited.
    await batch.start({ concurrency: 2, tolerate: { items: 1 } });
    await batch.progressWhen(({ state, open: running }) => state === 'ending' && running === 1);
    expect(await batch.cancel()).toMatchObject({ state: 'cancelled', summary: { settled: 2 } });
    expect(batch.posts()).toHaveLength(3);
    // No more places than failures: the batch has to know of these before the page may start anything.
    await batch.startUntilSent(4, { concurrency: 2, tolerate: { items: 2 } });
    const summary = { byStatus: { failed: 2, completed: 2 } };
    expect(await batch.finish()).toMatchObject({ state: 'done', summary });
    expect(batch.posts()).toHaveLength(4);
  });

  // Proves B7.
  it.concurrent('of the same id and other items is refused', async () => {
    const batch = await newBatch(1);
    await batch.start();
    const { batchId, requests } = batch;
    const slower = requests.map((request) => ({ ...request, settle: '77s' }) as const);
    const different = 'exists with different items, options or order';
    await expect(batch.batches.start(slower, { batchId })).rejects.toThrow(different);
    batch.add();
    await expect(batch.start()).rejects.toThrow(different);
    await expect(batch.start()).rejects.toBeInstanceOf(ConflictError);
    await batch.handle.result();
    expect(batch.posts()).toHaveLength(1);
  });

  // Proves B9.
  it.concurrent('that is cancelled leaves its running follow-ups, and tells what it knows', async () => {
    const batch = await newBatch(4, ENDLESS);
    await batch.startUntilSent(2, { concurrency: 2 });
    const summary = { items: 4, settled: 0 };
    expect(await batch.cancel()).toMatchObject({ state: 'cancelled', summary });
    for await (const each of batch.environment.followUps.list({ batchId: batch.batchId }))
      expect(each.state).toBe('running');
    // Started again, the batch awaits those that still run and starts the others.
    batch.endTurns();
    await batch.startUntilSent(4, { concurrency: 4 });
    expect((await batch.finish()).summary).toMatchObject({ byStatus: { completed: 4 } });
    expect(batch.posts()).toHaveLength(4);
  });

  // Proves B9.
  it.concurrent('tries again exactly what was not sent or was rejected, under the same names', async () => {
    const batch = await newBatch();
    const { sandbox } = batch.environment;
    batch.add();
    batch.again({ projectId: batch.projectId, jobId: 'later' });
    batch.add({}, {}, REJECTED_ONCE);
    const lost = batch.add({}, {}, { name: 'reset', operation: 'message', times: 1 });
    await batch.start();
    expect((await batch.handle.result()).summary).toMatchObject({
      byFailure: { JobNotFound: 1, FollowUpRejected: 1, DeliveryUnknown: 1 },
      unknownDeliveries: 1,
    });
    sandbox.addJob({ projectId: batch.projectId, id: 'later' });
    expect(await batch.handle.retry()).toMatchObject({ batchId: batch.batchId, attached: false });
    const summary = { settled: 4, byStatus: { completed: 3 }, byFailure: { DeliveryUnknown: 1 } };
    expect(await batch.handle.result()).toMatchObject({ summary });
    expect(batch.posts()).toHaveLength(5);
    expect(await batch.handle.retry()).toBeNull();
    expect(await batch.start()).toMatchObject({ attached: 'ended' });
    expect(batch.posts()).toHaveLength(5);
    await batch.handle.retry({ includeUnknown: true });
    expect((await batch.handle.result()).summary).toMatchObject({ byStatus: { completed: 4 } });
    expect(batch.posts(lost)).toHaveLength(2);
    const ends = await batch.handle.settled();
    expect(new Set(ends.map(({ workflowId }) => workflowId)).size).toBe(4);
  });
});

/** Runs the first item's follow-up as a worker of another program would, and completes it with a payload of its own. */
async function endUndecodably({ environment, requests }: BatchOfTest, workflowId: string): Promise<void> {
  const { client } = environment;
  const { namespace, identity } = client.options;
  const taskQueue = `another-program-${workflowId}`;
  await client.workflow.start(FOLLOW_UP_WORKFLOW, { workflowId, taskQueue, args: [requests[0]] });
  // The server takes no long poll without a deadline.
  const { taskToken } = await client.withDeadline(Date.now() + 60_000, () =>
    client.workflowService.pollWorkflowTaskQueue({ namespace, identity, taskQueue: { name: taskQueue } }),
  );
  const payload = { metadata: { encoding: Buffer.from('binary/another') }, data: Buffer.from('?') };
  const completeWorkflowExecutionCommandAttributes = { result: { payloads: [payload] } };
  await client.workflowService.respondWorkflowTaskCompleted({
    ...{ namespace, identity, taskToken },
    // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- its package is no dependency of ours
    commands: [{ commandType: COMPLETE_WORKFLOW_EXECUTION, completeWorkflowExecutionCommandAttributes }],
  });
}

/** The enum value COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION of Temporal's API. */
const COMPLETE_WORKFLOW_EXECUTION = 4;
