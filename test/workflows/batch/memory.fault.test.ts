import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { type WorkflowHandle, WorkflowFailedError } from '@temporalio/client';
import { MockActivityEnvironment } from '@temporalio/testing';
import { earlierPage, pageTroubleEvery } from '../../../src/activities/batch';
import { cutPages } from '../../../src/core/batch/pages';
import { BATCH_PAGE_WORKFLOW, BATCH_WORKFLOW, SIGNAL_ALLOT } from '../../../src/core/batch/workflows';
import { followUpWorkflowId, pageWorkflowId } from '../../../src/core/ids';
import { SIGNAL_WAKE } from '../../../src/core/names';
import { keyword } from '../../../src/core/starts';
import { BatchOfTest, deleteWorkflow, forget, LARGE, REJECTED_ONCE } from '../../harness/batch-of-test';
import { eventually } from '../../harness/eventually';
import { ENDLESS } from '../../harness/following';
import { ProcessEnvironment } from '../../harness/process-environment';
import { eventsOf, resetToTask, workflowTasks } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, newBatch } = sharedEnvironment({ lookEveryMs: 500, dynamicConfig: {} });

/** Takes back everything that a workflow has done since its first workflow task, and does it again. */
async function resetToStart(handle: WorkflowHandle): Promise<WorkflowHandle> {
  return resetToTask(handle, (await workflowTasks(handle))[0]);
}

async function signalsOf(handle: WorkflowHandle): Promise<string[]> {
  return (await eventsOf(handle)).flatMap(
    ({ workflowExecutionSignaledEventAttributes: signal }) => signal?.signalName ?? [],
  );
}

describe('what the server has forgotten', () => {
  it.concurrent('of a running batch is not sent again when somebody attaches', async () => {
    const batch = await newBatch();
    const { client, taskQueue } = batch.environment;
    batch.addMany(2, {}, { prompt: LARGE });
    batch.add(ENDLESS, { prompt: LARGE });
    await batch.start();
    await batch.progressWhen(({ settled, pages }) => settled === 2 && pages.done === 2);
    for (const index of [0, 1]) await forget(await batch.itemHandle(index));
    for (const page of [1, 2]) await forget(await batch.pageHandle(page));
    expect(await batch.start()).toMatchObject({ attached: 'running', pages: 3 });
    await expect((await batch.pageHandle(1)).describe()).rejects.toThrow();
    // Even a page that somebody hands over once more is sent away.
    const { batchId, workflow } = batch;
    const { run } = await batch.handle.describe();
    const [page] = cutPages((await batch.checked()).items);
    const workflowId = pageWorkflowId(batchId, run, 1);
    const args = [{ batchWorkflowId: workflow.workflowId, batchId, run, page }];
    await client.workflow.start(BATCH_PAGE_WORKFLOW, { workflowId, taskQueue, args });
    await batch.sent(3);
    expect(await batch.finish()).toMatchObject({ state: 'done', summary: { settled: 3 } });
    expect(batch.messages()).toEqual([1, 1, 1]);
    await expect((await batch.pageHandle(1)).result()).resolves.toMatchObject({ ends: [], notStarted: 1 });
  });

  it.concurrent('of a cancelled batch is not sent again when it goes on', async () => {
    const batch = (await newBatch(1)).addMany(2, ENDLESS);
    await batch.startUntilSent(2, { concurrency: 1 });
    await batch.cancel();
    for (const index of [0, 1]) await forget(await batch.itemHandle(index));
    await batch.startUntilSent(3);
    expect((await batch.finish()).summary).toMatchObject({ settled: 3, byStatus: { completed: 2 } });
    expect(batch.messages()).toEqual([1, 1, 1]);
    // The server terminates what it deletes: the page of the cancelled batch may still have seen that.
    const [lost] = (await batch.handle.settled()).filter(({ outcome }) => outcome !== 'completed');
    expect(['gone', 'terminated']).toContain(lost?.outcome);
    expect(lost?.delivery).toBeNull();
    // Nobody can tell: only who takes the risk sends it once more.
    expect(await batch.handle.retry()).toBeNull();
    await batch.handle.retry({ includeUnknown: true });
    await batch.sent(4);
    await batch.finish();
    expect(batch.messages()).toEqual([1, 2, 1]);
  });

  it.concurrent('of a terminated batch is not sent again when it goes on', async () => {
    const batch = (await newBatch(1)).addMany(2, ENDLESS);
    await batch.startUntilSent(2, { concurrency: 1 });
    const page = await batch.pageHandle(1);
    await batch.terminate();
    await page.terminate();
    for (const index of [0, 1]) await forget(await batch.itemHandle(index));
    await batch.startUntilSent(3);
    const summary = { byStatus: { completed: 1 }, byFailure: { gone: 2 } };
    expect(await batch.finish()).toMatchObject({ summary });
    expect(batch.messages()).toEqual([1, 1, 1]);
  });

  it.concurrent(
    'of a batch that was reset, and terminated before a worker came, is not sent again',
    async () => {
      const { address } = await open();
      await ProcessEnvironment.with({ address }, async (environment) => {
        const batch = new BatchOfTest(environment).addMany(1).addMany(1, ENDLESS);
        const worker = await environment.startWorker();
        await batch.startUntilSent(2);
        await batch.progressWhen(({ settled }) => settled === 1);
        worker.signal('SIGKILL');
        await resetToStart(batch.workflow);
        await batch.terminate();
        await forget(await batch.itemHandle(0));
        await environment.startWorker();
        await batch.start();
        const summary = { settled: 2, byStatus: { completed: 2 } };
        expect(await batch.finish()).toMatchObject({ summary });
        expect(await batch.handle.settled()).toHaveLength(2);
        expect(batch.messages()).toEqual([1, 1]);
      });
    },
  );

  it.concurrent('can’t be told: the batch does not go on, and its results are an error', async () => {
    const batch = (await newBatch(1)).addMany(1, ENDLESS);
    await batch.startUntilSent(2);
    await batch.cancel();
    await forget(await batch.pageHandle(1));
    await expect(batch.start()).rejects.toMatchObject({ code: 'BATCH_FORGOTTEN' });
    await expect(batch.handle.retry()).rejects.toMatchObject({ code: 'BATCH_FORGOTTEN' });
    await expect(batch.handle.settled()).rejects.toMatchObject({ code: 'RESULTS_UNREADABLE' });
    expect(batch.messages()).toEqual([1, 1]);
  });
});

describe('an item', () => {
  it.concurrent('that somebody deletes while it runs has an end of its own, and its batch ends', async () => {
    const batch = await newBatch(1, ENDLESS);
    const attached = batch.add(ENDLESS, { requestId: 'attached' });
    batch.add();
    await batch.environment.send({ ...attached, requestId: 'attached', prompt: 'Rebase on main.' });
    await batch.startUntilSent(3);
    for (const index of [0, 1]) await forget(await batch.itemHandle(index));
    const summary = { settled: 3, byStatus: { completed: 1 } };
    expect(await batch.handle.result()).toMatchObject({ state: 'done', summary });
    // The server terminates what it deletes: whoever hears of that first.
    const ends = (await batch.handle.settled()).filter(({ outcome }) => outcome !== 'completed');
    const deleted = { outcome: expect.stringMatching(/^(gone|terminated)$/), delivery: null };
    expect(ends).toMatchObject([deleted, deleted]);
  });

  it.concurrent('that runs without ever having had a workflow task is woken', async () => {
    const batch = await newBatch();
    const key = batch.add({}, { requestId: 'delayed' });
    const { client, taskQueue } = batch.environment;
    // Like one that a page started before it was ended at the wrong moment, its history has nothing but the start.
    const delayed = await client.workflow.start('followUp', {
      workflowId: followUpWorkflowId(key.projectId, key.jobId, 'delayed'),
      taskQueue,
      args: [{ ...batch.requests[0], ...key }],
      typedSearchAttributes: [keyword('FollowUpBatch', batch.batchId)],
      startDelay: '1 hour',
    });
    await batch.start();
    const woken = await eventually('it is woken', () => signalsOf(delayed), {
      until: ({ length }) => length > 0,
    });
    expect(woken).toEqual([SIGNAL_WAKE]);
    await delayed.terminate();
    expect((await batch.handle.result()).summary).toMatchObject({ byFailure: { terminated: 1 } });
  });

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

  it.concurrent(
    'whose name somebody else took after its follow-up was deleted is never called not sent',
    async () => {
      const batch = await newBatch();
      const key = batch.add({}, { requestId: 'mine', prompt: 'Ours.' });
      batch.add(ENDLESS);
      await batch.start({ concurrency: 2 });
      await batch.progressWhen(({ settled }) => settled === 1);
      const page = await batch.pageHandle(1);
      await batch.terminate();
      await page.terminate();
      await deleteWorkflow(await batch.itemHandle(0));
      const foreign = await eventually('its name is free', () =>
        batch.environment.send({ ...key, requestId: 'mine', prompt: 'Theirs.' }),
      );
      await foreign.handle.result();
      await batch.start();
      await batch.progressWhen(({ settled }) => settled === 1);
      await batch.cancel({ followUps: true });
      const end = (await batch.handle.settled()).find(({ jobId }) => jobId === key.jobId);
      expect(end).toMatchObject({ outcome: 'conflict', delivery: null });
      expect(batch.posts(key).map(({ prompt }) => prompt?.text)).toEqual(['Ours.', 'Theirs.']);
    },
  );
});

it.concurrent(
  'a batch that is cancelled ends what it has attached to, and leaves what others have started',
  async () => {
    const batch = await newBatch();
    const theirs = batch.add(ENDLESS, { requestId: 'theirs' });
    const ours = batch.add({ status: 'active', ...ENDLESS }, { whenActive: 'wait' });
    const asked = { requestId: 'theirs', prompt: 'Rebase on main.' } as const;
    const foreign = await batch.environment.send({ ...theirs, ...asked });
    await batch.sent(1);
    // The first run has started the second item, which waits; the second run attaches to it.
    await batch.start();
    const item = await batch.itemHandle(1);
    await batch.progressWhen(({ open: running }) => running === 2);
    await batch.cancel();
    await batch.start();
    await batch.progressWhen(({ open: running }) => running === 2);
    const summary = { settled: 2, byFailure: { cancelled: 1, 'left-running': 1 } };
    expect(await batch.cancel({ followUps: true })).toMatchObject({ state: 'cancelled', summary });
    expect((await item.describe()).status.name).toBe('CANCELLED');
    expect((await foreign.handle.describe()).status.name).toBe('RUNNING');
    expect(batch.posts(ours)).toEqual([]);
    await foreign.handle.terminate();
  },
);

describe('a page', () => {
  /** A batch of two pages; the one that has arrived first has begun. */
  async function ofTwoPages() {
    const batch = await newBatch(2, ENDLESS, { prompt: LARGE });
    await batch.startUntilSent(1, { concurrency: 1 });
    await batch.progressWhen(({ pages }) => pages.handedOver === 2);
    const messages = batch.messages();
    const pageWith = (sent: number) => batch.pageHandle(messages.indexOf(sent) + 1);
    return { batch, messages, begun: await pageWith(1), waiting: await pageWith(0) };
  }

  it.concurrent('whose batch is terminated closes, also one that waits for its turn', async () => {
    const { batch, messages, begun, waiting } = await ofTwoPages();
    await batch.terminate();
    await expect(waiting.result()).resolves.toMatchObject({ ends: [], left: [], notStarted: 1 });
    batch.endTurns();
    await expect(begun.result()).resolves.toMatchObject({ ends: [{ outcome: 'completed' }] });
    expect(batch.messages()).toEqual(messages);
  });

  it.concurrent('looks less often for what has become of its batch while nothing of it is open', async () => {
    const { batch, begun, waiting } = await ofTwoPages();
    const { client } = batch.environment;
    const { run, workflowId: batchWorkflowId } = await batch.handle.describe();
    for (const [page, nextRetryDelay] of [
      [begun, 1_000],
      [waiting, 4_000],
    ] as const) {
      const { workflowId, runId } = await page.describe();
      const info = { attempt: 2, workflowExecution: { workflowId, runId } };
      const activity = new MockActivityEnvironment(info, { client });
      const looked = activity.run(pageTroubleEvery(1_000), { batchWorkflowId, run, known: [] });
      await expect(looked).rejects.toMatchObject({ nextRetryDelay });
    }
    await batch.handle.cancel({ followUps: true });
  });

  it.concurrent.each([
    { attempt: 1, nextRetryDelay: 1_000 },
    { attempt: 4, nextRetryDelay: 8_000 },
    { attempt: 30, nextRetryDelay: 60_000 },
  ])(
    'that is slow to close is told again later and later: attempt $attempt',
    async ({ attempt, nextRetryDelay }) => {
      const { client } = await open();
      const page = await client.workflow.start(BATCH_PAGE_WORKFLOW, {
        workflowId: `slow-page-${attempt}`,
        taskQueue: 'nobody-works-here',
      });
      const activity = new MockActivityEnvironment({ attempt }, { client });
      await expect(activity.run(earlierPage, page.workflowId)).rejects.toMatchObject({ nextRetryDelay });
      expect(await signalsOf(page)).toContain(SIGNAL_ALLOT);
      await page.terminate();
    },
  );

  it.concurrent('of a retry that is reset does not act upon an old answer again', async () => {
    const batch = await newBatch();
    const key = batch.add(ENDLESS, {}, REJECTED_ONCE);
    batch.add(ENDLESS);
    await batch.start();
    await batch.progressWhen(({ settled }) => settled === 1);
    await batch.cancel();
    // The item gets a second run, whose message is processed, and which then fails.
    await batch.handle.retry();
    await batch.environment.sandbox.journal.waitFor({ ...key, operation: 'message', processed: true });
    await (await batch.itemHandle(0)).terminate();
    await batch.progressWhen(({ settled }) => settled === 1);
    // Back to the workflow task that was told that the first run was rejected.
    const page = await batch.pageHandle(1);
    const events = await eventsOf(page);
    const { workflowId } = await batch.itemHandle(0);
    const asked = events.find(
      ({ activityTaskScheduledEventAttributes: scheduled }) =>
        scheduled?.activityType?.name === 'followUpEnd' &&
        Buffer.from(scheduled.input?.payloads?.[0]?.data ?? []).includes(`"${workflowId}"`),
    );
    const told = events.findIndex(({ activityTaskCompletedEventAttributes: completed }) =>
      asked?.eventId?.eq(completed?.scheduledEventId ?? 0),
    );
    expect(told).toBeGreaterThan(0);
    const task = events.slice(told).find((event) => event.workflowTaskCompletedEventAttributes);
    await resetToTask(page, task);
    expect((await batch.finish()).summary).toMatchObject({ byFailure: { terminated: 1 } });
    // The rejected one, and that of the second run.
    expect(batch.messages()).toEqual([2, 1]);
  });

  it.concurrent('that is reset after its batch has ended asks for its ends once more', async () => {
    const batch = await newBatch(2);
    await batch.start();
    await batch.handle.result();
    const page = await batch.pageHandle(1);
    await page.result();
    // One that hears that its batch is gone before it has its answers closes without them, and can be reset again.
    const ends = await eventually('its ends can be read', async () => {
      await (await resetToStart(page)).result();
      return batch.handle.settled();
    });
    expect(ends.map(({ outcome }) => outcome)).toEqual(['completed', 'completed']);
    expect(batch.messages()).toEqual([1, 1]);
  });

  it.concurrent('that is reset starts nothing that it may have started before', async () => {
    const batch = await newBatch(2);
    batch.add(ENDLESS);
    await batch.start({ concurrency: 3 });
    await batch.progressWhen(({ settled }) => settled === 2);
    await forget(await batch.itemHandle(0));
    await resetToStart(await batch.pageHandle(1));
    const summary = { settled: 3, byStatus: { completed: 2 }, byFailure: { gone: 1 } };
    expect(await batch.finish()).toMatchObject({ summary });
    expect(batch.messages()).toEqual([1, 1, 1]);
  });
});

describe('a batch that came with its items', () => {
  it.concurrent('and is cancelled with its open items tells how they ended', async () => {
    const batch = await newBatch(2, ENDLESS);
    await batch.startWithItems();
    await batch.sent(2);
    const summary = { settled: 2, byFailure: { cancelled: 2 } };
    expect(await batch.cancel({ followUps: true })).toMatchObject({ state: 'cancelled', summary });
    expect(await batch.handle.settled()).toHaveLength(2);
  });

  it.concurrent('and is reset goes on with the pages that are there', async () => {
    const batch = (await newBatch(1, {}, { prompt: LARGE })).addMany(1, ENDLESS, { prompt: LARGE });
    const handle = await batch.startWithItems();
    await batch.sent(2);
    await resetToStart(handle);
    await batch.progressWhen(({ pages }) => pages.handedOver === 2);
    expect(await batch.finish()).toMatchObject({ state: 'done', summary: { settled: 2 } });
    expect(batch.messages()).toEqual([1, 1]);
  });

  it.concurrent('is tried again by its id alone', async () => {
    const batch = await newBatch(1, {}, {}, REJECTED_ONCE);
    await batch.startWithItems();
    await batch.handle.result();
    await batch.handle.retry();
    expect((await batch.handle.result()).summary).toMatchObject({ byStatus: { completed: 1 } });
  });
});

describe('a foreign caller', () => {
  it.concurrent.each([
    ['a batch with an empty item', BATCH_WORKFLOW, { items: [{}] }, 'item 1: '],
    ['a batch with no list', BATCH_WORKFLOW, { items: { length: 1 } }, 'items: '],
    ['a batch with a number', BATCH_WORKFLOW, 7, 'input: '],
    ['a page with nonsense', BATCH_PAGE_WORKFLOW, { page: { items: [{}] } }, ''],
  ])('that starts %s gets a failure that names the problem', async (_, type, input, problem) => {
    const { client, taskQueue } = await open();
    const workflowId = `follow-up-batch:foreign-${randomUUID().slice(0, 8)}`;
    const handle = await client.workflow.start(type, { workflowId, taskQueue, args: [input] });
    const error: unknown = await handle.result().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(WorkflowFailedError);
    const message = expect.stringContaining(`Invalid batch: ${problem}`);
    expect(error).toMatchObject({ cause: { type: 'InvalidBatch', message } });
  });

  it.concurrent('that signals nonsense stalls neither a batch nor its page', async () => {
    const batch = await newBatch(1, ENDLESS);
    await batch.startUntilSent(1);
    const page = await batch.pageHandle(1);
    for (const nonsense of [null, 'text', {}, { run: 'r', page: 1 }, { places: 'many', mode: 'run' }]) {
      await batch.workflow.signal('report', nonsense);
      await page.signal('allot', nonsense);
    }
    expect((await batch.finish()).summary).toMatchObject({ byStatus: { completed: 1 } });
  });
});
