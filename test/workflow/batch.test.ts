import { describe, expect, it } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { ConflictError } from '../../src/client';
import { followUpWorkflowId, pageWorkflowId } from '../../src/core/ids';
import { FOLLOW_UP_WORKFLOW } from '../../src/core/names';
import { BatchOfTest, endless, taskSeconds } from '../harness/batch-of-test';
import { sharedEnvironment } from '../harness/shared-environment';

const open = sharedEnvironment({ sandbox: { turnMs: 500 } });

describe('a batch', () => {
  it.concurrent('sends each item once, and its summary tells how they ended', async () => {
    const batch = new BatchOfTest(await open());
    for (let item = 0; item < 12; item += 1) batch.add({ turn: { reads: 2 } });
    batch.add({ turn: { outcome: 'failed', reads: 2 } });
    batch.again({ projectId: batch.projectId, jobId: 'nobody' });
    const started = await batch.start({ concurrency: 5 });
    expect(started).toMatchObject({ attached: false, items: 14, pages: 1 });
    const { state, summary } = await batch.handle.result();
    expect(state).toBe('done');
    expect(summary).toMatchObject({
      batchId: batch.batchId,
      items: 14,
      settled: 14,
      byStatus: { completed: 12, failed: 1 },
      byFailure: { JobNotFound: 1 },
      byEvidence: { 'seen-active': 13 },
      unknownDeliveries: 0,
      firstFailures: [{ outcome: expect.any(String) }, { outcome: expect.any(String) }],
    });
    expect(batch.posts()).toHaveLength(13);
    expect(new Set(batch.posts().map(({ jobId }) => jobId)).size).toBe(13);
    const ends = await batch.handle.settled();
    expect(ends).toHaveLength(14);
    expect(ends.find(({ jobId }) => jobId === 'nobody')).toMatchObject({
      outcome: 'JobNotFound',
      delivery: 'not-sent',
      message: expect.stringContaining('Nothing was sent'),
    });
  });

  it.concurrent('ends where another program has ended an item with what nobody can decode', async () => {
    const batch = new BatchOfTest(await open());
    const { projectId, jobId } = batch.add({}, { requestId: 'mine' });
    await endUndecodably(batch.environment.client, followUpWorkflowId(projectId, jobId, 'mine'), batch);
    await batch.start();
    const { state, summary } = await batch.handle.result();
    expect({ state, summary }).toMatchObject({
      state: 'done',
      summary: { byStatus: {}, byFailure: { broken: 1 } },
    });
    const [end] = await batch.handle.settled();
    expect(end).toMatchObject({ delivery: null, message: expect.stringContaining("It can't be read") });
    expect(batch.posts()).toEqual([]);
  });

  it.concurrent('has no more follow-ups open than its concurrency', async () => {
    const batch = new BatchOfTest(await open());
    const jobs = Array.from({ length: 6 }, () => batch.add(endless));
    await batch.start({ concurrency: 2 });
    await batch.sent(2);
    await batch.progressWhen(({ open: running }) => running === 2);
    expect(batch.posts()).toHaveLength(2);
    const [first] = batch.posts();
    batch.environment.sandbox.changeJob(
      { projectId: batch.projectId, jobId: first?.jobId ?? '' },
      { status: 'failed' },
    );
    await batch.sent(3);
    expect(await batch.handle.setConcurrency(6)).toMatchObject({ concurrency: 6 });
    await batch.sent(6);
    for (const key of jobs) batch.environment.sandbox.changeJob(key, { status: 'failed' });
    expect((await batch.handle.result()).summary).toMatchObject({
      byStatus: { failed: 6 },
    });
  });

  it.concurrent('runs two items of one job one after the other, in order', async () => {
    const batch = new BatchOfTest(await open());
    const key = batch.add({ turns: [{ durationMs: 2_000 }, { durationMs: 500 }] }, { prompt: 'first' });
    batch.again(key, { prompt: 'second' });
    await batch.start();
    expect((await batch.handle.result()).summary).toMatchObject({
      byStatus: { completed: 2 },
    });
    expect(batch.posts().map(({ prompt }) => prompt?.text)).toEqual(['first', 'second']);
    const [first, second] = await batch.handle.settled();
    expect(Date.parse(second?.settledAt ?? '')).toBeGreaterThan(Date.parse(first?.settledAt ?? ''));
  });

  it.concurrent(
    'counts an item that somebody terminated or cancelled, and gives its place to the next',
    async () => {
      const batch = new BatchOfTest(await open());
      const jobs = [batch.add(endless), batch.add(endless), batch.add()];
      await batch.start({ concurrency: 1 });
      const handleOf = async (index: number) => {
        await batch.environment.sandbox.journal.waitFor({ ...jobs[index], operation: 'message' });
        return batch.itemHandle(index);
      };
      await (await handleOf(0)).terminate('by an operator');
      await (await handleOf(1)).cancel();
      const { summary } = await batch.handle.result();
      expect(summary).toMatchObject({
        settled: 3,
        byStatus: { completed: 1 },
        byFailure: { terminated: 1, cancelled: 1 },
      });
      const ends = await batch.handle.settled();
      expect(ends.map(({ outcome, delivery }) => [outcome, delivery])).toEqual([
        ['terminated', null],
        ['cancelled', 'accepted'],
        ['completed', 'accepted'],
      ]);
    },
  );

  it.concurrent(
    'beyond its tolerance starts no further item, lets running ones end, and fails with its summary',
    async () => {
      const batch = new BatchOfTest(await open());
      const slow = batch.add(endless);
      for (let item = 0; item < 10; item += 1) batch.add({ turn: { outcome: 'failed' } });
      await batch.start({ concurrency: 2, tolerate: { items: 1 } });
      await batch.progressWhen(({ state }) => state === 'ending');
      batch.environment.sandbox.changeJob(slow, {
        status: 'completed',
        prLink: 'https://example.test/pull/1',
      });
      const { state, summary, message } = await batch.handle.result();
      expect(state).toBe('tolerance-exceeded');
      expect(message).toContain('than the tolerance allows: 2.');
      expect(summary).toMatchObject({ items: 11, byStatus: { failed: 2, completed: 1 } });
      expect(batch.posts()).toHaveLength(3);
      expect(batch.posts(slow)).toHaveLength(1);
    },
  );

  it.concurrent('goes on when it is started again after a failure, and sends nothing twice', async () => {
    const batch = new BatchOfTest(await open());
    for (let item = 0; item < 5; item += 1) batch.add({ turn: { outcome: 'failed' } });
    await batch.start({ concurrency: 1, tolerate: { items: 1 } });
    await batch.handle.result();
    expect(batch.posts()).toHaveLength(2);
    // It keeps its tolerance unless it is told otherwise.
    await batch.start({ concurrency: 5 });
    const { state: again, message } = await batch.handle.result();
    expect(again).toBe('tolerance-exceeded');
    expect(message).toContain('starts nothing unless its tolerance is raised');
    expect(batch.posts()).toHaveLength(2);
    expect(await batch.start({ concurrency: 5, tolerate: null })).toMatchObject({ attached: false });
    const { state, summary } = await batch.handle.result();
    expect({ state, summary }).toMatchObject({
      state: 'done',
      summary: { settled: 5, byStatus: { failed: 5 } },
    });
    expect(batch.posts()).toHaveLength(5);
    expect(await batch.start()).toMatchObject({ attached: 'ended' });
    expect(batch.posts()).toHaveLength(5);
  });

  it.concurrent(
    'counts earlier failures when it is started again with a tolerance, and goes on within it',
    async () => {
      const batch = new BatchOfTest(await open());
      for (let item = 0; item < 2; item += 1) batch.add({ turn: { outcome: 'failed' } });
      const jobs = [batch.add(endless), batch.add(endless)];
      await batch.start({ concurrency: 1 });
      await batch.sent(3);
      await batch.handle.cancel();
      await batch.handle.result();
      // One more than is tolerated: nothing further is sent, and the open one is awaited.
      await batch.start({ concurrency: 2, tolerate: { items: 1 } });
      await batch.progressWhen(({ state, open: running }) => state === 'ending' && running === 1);
      await batch.handle.cancel();
      expect(await batch.handle.result()).toMatchObject({ state: 'cancelled', summary: { settled: 2 } });
      expect(batch.posts()).toHaveLength(3);
      // No more places than failures: the batch has to know of these before the page may start anything.
      await batch.start({ concurrency: 2, tolerate: { items: 2 } });
      await batch.sent(4);
      for (const key of jobs) batch.environment.sandbox.changeJob(key, { status: 'completed' });
      expect(await batch.handle.result()).toMatchObject({
        state: 'done',
        summary: { byStatus: { failed: 2, completed: 2 } },
      });
      expect(batch.posts()).toHaveLength(4);
    },
  );

  it.concurrent('that is cancelled while it ends by its tolerance tells what it knows', async () => {
    const batch = new BatchOfTest(await open());
    batch.add(endless);
    for (let item = 0; item < 3; item += 1) batch.add({ turn: { outcome: 'failed' } });
    await batch.start({ concurrency: 2, tolerate: { items: 1 } });
    await batch.progressWhen(({ state }) => state === 'ending');
    await batch.handle.cancel();
    expect(await batch.handle.result()).toMatchObject({
      state: 'cancelled',
      summary: { settled: 2, byStatus: { failed: 2 } },
    });
  });

  it.concurrent('whose page somebody cancelled starts nothing more, and is incomplete', async () => {
    const batch = new BatchOfTest(await open());
    batch.add(endless);
    batch.add();
    await batch.start({ concurrency: 1 });
    await batch.sent(1);
    const { run } = await batch.handle.describe();
    await batch.environment.client.workflow.getHandle(pageWorkflowId(batch.batchId, run, 1)).cancel();
    expect(await batch.handle.result()).toMatchObject({ state: 'incomplete', summary: { settled: 0 } });
    expect(batch.posts()).toHaveLength(1);
  });

  it.concurrent(
    'has a minute for a task, and its pages too: a worker may have to replay many at once',
    async () => {
      const batch = new BatchOfTest(await open());
      batch.add();
      const { workflowId } = await batch.start();
      const { run } = await batch.handle.describe();
      const { workflow } = batch.environment.client;
      const pageId = pageWorkflowId(batch.batchId, run, 1);
      const both = [workflowId, pageId].map((id) => taskSeconds(workflow.getHandle(id)));
      expect(await Promise.all(both)).toEqual([60, 60]);
    },
  );

  it.concurrent('of the same id and other items is refused', async () => {
    const batch = new BatchOfTest(await open());
    batch.add();
    await batch.start();
    batch.add();
    await expect(batch.start()).rejects.toBeInstanceOf(ConflictError);
    await batch.handle.result();
    expect(batch.posts()).toHaveLength(1);
  });

  it.concurrent('pauses and resumes', async () => {
    const batch = new BatchOfTest(await open());
    const jobs = Array.from({ length: 4 }, () => batch.add(endless));
    await batch.start({ concurrency: 1 });
    await batch.sent(1);
    expect(await batch.handle.pause()).toMatchObject({ state: 'paused' });
    for (const key of jobs) batch.environment.sandbox.changeJob(key, { status: 'failed' });
    await batch.progressWhen(({ open: running, settled }) => running === 0 && settled === 1);
    expect(batch.posts()).toHaveLength(1);
    await batch.handle.resume();
    await batch.sent(2);
    await batch.handle.cancel();
    expect((await batch.handle.result()).state).toBe('cancelled');
  });

  it.concurrent('that is cancelled leaves its running follow-ups, and tells what it knows', async () => {
    const batch = new BatchOfTest(await open());
    const jobs = Array.from({ length: 4 }, () => batch.add(endless));
    await batch.start({ concurrency: 2 });
    await batch.sent(2);
    await batch.handle.cancel();
    const { state, summary } = await batch.handle.result();
    expect({ state, summary }).toMatchObject({ state: 'cancelled', summary: { items: 4, settled: 0 } });
    for await (const each of batch.client.list({ batchId: batch.batchId }))
      expect(each.state).toBe('running');
    // Started again, the batch awaits those that still run and starts the others.
    for (const key of jobs) batch.environment.sandbox.changeJob(key, { status: 'failed' });
    await batch.start({ concurrency: 4 });
    await batch.sent(4);
    for (const key of jobs) batch.environment.sandbox.changeJob(key, { status: 'failed' });
    expect((await batch.handle.result()).summary).toMatchObject({
      byStatus: { failed: 4 },
    });
    expect(batch.posts()).toHaveLength(4);
  });

  it.concurrent('that is cancelled with its running follow-ups ends those too', async () => {
    const batch = new BatchOfTest(await open());
    for (let item = 0; item < 3; item += 1) batch.add(endless);
    await batch.start({ concurrency: 2 });
    await batch.sent(2);
    await batch.handle.cancel({ followUps: true });
    const { state, summary } = await batch.handle.result();
    expect({ state, summary }).toMatchObject({
      state: 'cancelled',
      summary: { byFailure: { cancelled: 2 } },
    });
    expect((await batch.handle.describe()).state).toBe('cancelled');
    expect(batch.posts()).toHaveLength(2);
  });

  it.concurrent(
    'whose page somebody terminated comes to its end, and goes on when it is started again',
    async () => {
      const batch = new BatchOfTest(await open());
      const jobs = Array.from({ length: 3 }, () => batch.add(endless));
      await batch.start({ concurrency: 1 });
      await batch.sent(1);
      const { run } = await batch.handle.describe();
      await batch.environment.client.workflow.getHandle(pageWorkflowId(batch.batchId, run, 1)).terminate();
      // The batch hears of it when it has something to tell.
      await batch.handle.setConcurrency(2);
      const { state, summary } = await batch.handle.result();
      expect({ state, summary }).toMatchObject({ state: 'incomplete', summary: { settled: 0 } });
      await batch.start({ concurrency: 3 });
      await batch.sent(3);
      for (const key of jobs) batch.environment.sandbox.changeJob(key, { status: 'failed' });
      expect((await batch.handle.result()).summary).toMatchObject({
        byStatus: { failed: 3 },
      });
      expect(batch.posts()).toHaveLength(3);
    },
  );

  it.concurrent(
    'that somebody terminated leaves its open follow-ups to their pages, which begin nothing more once they know',
    async () => {
      const batch = new BatchOfTest(await open());
      const { client, sandbox } = batch.environment;
      const jobs = Array.from({ length: 4 }, () => batch.add(endless));
      const { workflowId } = await batch.start({ concurrency: 2 });
      await batch.sent(2);
      const { run } = await batch.handle.describe();
      await client.workflow.getHandle(workflowId).terminate();
      // The page hears of it when it tells of an end; by then it has given the place to the third.
      const end = (index: number) => {
        sandbox.changeJob(jobs[index] ?? { projectId: '', jobId: '' }, { status: 'completed' });
      };
      end(0);
      await batch.sent(3);
      end(1);
      end(2);
      const page = client.workflow.getHandle(pageWorkflowId(batch.batchId, run, 1));
      expect(await page.result()).toMatchObject({
        ends: [{ outcome: 'completed' }, { outcome: 'completed' }, { outcome: 'completed' }],
        notStarted: 1,
      });
      expect(batch.posts()).toHaveLength(3);
    },
  );

  it.concurrent(
    'is tried again with exactly what was not sent or was rejected, under the same names',
    async () => {
      const batch = new BatchOfTest(await open());
      const { sandbox } = batch.environment;
      batch.add();
      batch.again({ projectId: batch.projectId, jobId: 'later' });
      const rejected = batch.add();
      const lost = batch.add();
      const once = { operation: 'message', times: 1 } as const;
      sandbox.setFault({ name: 'status', ...rejected, ...once, parameters: { code: 422 } });
      sandbox.setFault({ name: 'reset', ...lost, ...once });
      await batch.start();
      const { summary } = await batch.handle.result();
      expect(summary).toMatchObject({
        byFailure: { JobNotFound: 1, FollowUpRejected: 1, DeliveryUnknown: 1 },
        unknownDeliveries: 1,
      });
      sandbox.addJob({ projectId: batch.projectId, id: 'later' });
      expect(await batch.handle.retry()).toMatchObject({
        batchId: batch.batchId,
        attached: false,
      });
      expect((await batch.handle.result()).summary).toMatchObject({
        settled: 4,
        byStatus: { completed: 3 },
        byFailure: { DeliveryUnknown: 1 },
      });
      expect(batch.posts()).toHaveLength(5);
      expect(await batch.handle.retry()).toBeNull();
      expect(await batch.start()).toMatchObject({ attached: 'ended' });
      expect(batch.posts()).toHaveLength(5);
      await batch.handle.retry({ includeUnknown: true });
      expect((await batch.handle.result()).summary).toMatchObject({
        byStatus: { completed: 4 },
      });
      expect(batch.posts(lost)).toHaveLength(2);
      const ends = await batch.handle.settled();
      expect(new Set(ends.map(({ workflowId }) => workflowId)).size).toBe(4);
    },
  );
});

/** Runs the first item's follow-up as a worker of another program would, and completes it with a payload of its own. */
async function endUndecodably(client: Client, workflowId: string, { requests }: BatchOfTest): Promise<void> {
  const { namespace, identity } = client.options;
  const taskQueue = `another-program-${workflowId}`;
  await client.workflow.start(FOLLOW_UP_WORKFLOW, { workflowId, taskQueue, args: [requests[0]] });
  const { taskToken } = await client.withDeadline(Date.now() + 10_000, () =>
    client.workflowService.pollWorkflowTaskQueue({ namespace, identity, taskQueue: { name: taskQueue } }),
  );
  const payload = { metadata: { encoding: Buffer.from('binary/another') }, data: Buffer.from('?') };
  await client.workflowService.respondWorkflowTaskCompleted({
    namespace,
    identity,
    taskToken,
    commands: [
      {
        // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- its package is no dependency of ours
        commandType: COMPLETE_WORKFLOW_EXECUTION,
        completeWorkflowExecutionCommandAttributes: { result: { payloads: [payload] } },
      },
    ],
  });
}

/** The enum value COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION of Temporal's API. */
const COMPLETE_WORKFLOW_EXECUTION = 4;
