import { describe, expect, it } from '@jest/globals';
import { ConflictError } from '../../../src/client';
import { followUpWorkflowId } from '../../../src/core/ids';
import { FOLLOW_UP_WORKFLOW } from '../../../src/core/names';
import { type BatchOfTest, REJECTED_ONCE } from '../../harness/batch-of-test';
import { eventually } from '../../harness/eventually';
import { ENDLESS } from '../../harness/following';
import { sharedEnvironment } from '../../harness/shared-environment';

const { newBatch } = sharedEnvironment();

async function runningAre(batch: BatchOfTest, count: number): Promise<void> {
  await eventually(`${count} follow-ups run`, async () => (await batch.running()).length === count);
}

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

  // Proves B10.
  it.concurrent('ends what it has open when it is cancelled with its follow-ups after its end', async () => {
    const batch = await newBatch(3, ENDLESS);
    await batch.startUntilSent(2, { concurrency: 2 });
    await batch.cancel();
    await runningAre(batch, 2);
    expect(await batch.handle.cancel({ followUps: true })).toBe(2);
    await runningAre(batch, 0);
    expect(await batch.handle.cancel({ followUps: true })).toBe(0);
    await batch.startUntilSent(3, { concurrency: 3 });
    await batch.terminate();
    await batch.handle.cancel({ followUps: true });
    await runningAre(batch, 0);
    expect(batch.posts()).toHaveLength(3);
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

  it.concurrent('that is named by its workflow id is that batch, also for the same file', async () => {
    const batch = await newBatch(2, ENDLESS);
    const { workflowId } = await batch.startUntilSent(2);
    const again = await batch.batches.start(batch.requests, { batchId: workflowId });
    expect(again).toMatchObject({ batchId: batch.batchId, workflowId, attached: 'running' });
    expect(await batch.finish()).toMatchObject({ state: 'done', summary: { settled: 2 } });
    expect(batch.messages()).toEqual([1, 1]);
  });

  // Proves B7.
  it.concurrent('of another client is compared with the file that is given its id', async () => {
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
