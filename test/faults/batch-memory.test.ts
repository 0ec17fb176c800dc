import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from '@jest/globals';
import { type WorkflowHandle, WorkflowFailedError } from '@temporalio/client';
import { MockActivityEnvironment } from '@temporalio/testing';
import { hasCode } from '../../src/client';
import type { DevServer } from '../../dev/dev-server';
import { earlierPage, pageTroubleEvery } from '../../src/activities/batch';
import { MAX_PAGE_ITEMS } from '../../src/core/batch';
import { cutPages } from '../../src/core/batch-pages';
import {
  BATCH_PAGE_WORKFLOW,
  BATCH_WORKFLOW,
  type BatchInput,
  type PageInput,
  SIGNAL_ALLOT,
} from '../../src/core/batch-workflows';
import { followUpWorkflowId, pageWorkflowId } from '../../src/core/ids';
import { SIGNAL_WAKE } from '../../src/core/names';
import { BatchOfTest, endless, forget } from '../harness/batch-of-test';
import { eventually } from '../harness/eventually';
import { startForgetfulServer } from '../harness/forgetful-server';
import { Environment, QUICK } from '../harness/environment';

let opened: Promise<{ server: DevServer; environment: Environment }> | undefined;

/** Concurrent tests start before any `beforeAll`. */
async function open(): Promise<Environment> {
  opened ??= startForgetfulServer().then(async (server) => {
    const { address } = server;
    return {
      server,
      environment: await Environment.open({ address, sandbox: { turnMs: 300 }, lookEveryMs: 1_000 }),
    };
  });
  return (await opened).environment;
}

afterAll(async () => {
  const { environment, server } = (await opened) ?? {};
  await environment?.close();
  await server?.stop();
});

/** A message that fills a page by itself: a batch of three has three pages. */
const LARGE = 'x'.repeat(256 * 1_024);

/** As many items as a page holds: the server takes some time to start them. */
const MANY = MAX_PAGE_ITEMS;

/** An event's id. */
type Long = NonNullable<
  NonNullable<Awaited<ReturnType<WorkflowHandle['fetchHistory']>>['events']>[number]['eventId']
>;

/** Takes back everything that a workflow has done since its first workflow task, and does it again. */
async function resetToStart(handle: WorkflowHandle): Promise<void> {
  const { events } = await handle.fetchHistory();
  const firstTask = events?.find((event) => event.workflowTaskCompletedEventAttributes);
  await resetTo(handle, firstTask?.eventId ?? null);
}

async function resetTo(
  { client, workflowId }: WorkflowHandle,
  workflowTaskFinishEventId: Long | null,
): Promise<void> {
  const { runId } = await client.getHandle(workflowId).describe();
  await client.workflowService.resetWorkflowExecution({
    namespace: client.options.namespace,
    workflowExecution: { workflowId, runId },
    workflowTaskFinishEventId,
    requestId: randomUUID(),
    reason: 'a test',
  });
}

/** Starts a batch with its items in its input, as a schedule does. */
async function startWithItems(batch: BatchOfTest, input: Partial<BatchInput> = {}): Promise<WorkflowHandle> {
  const { items } = await batch.batches.check(batch.requests, { batchId: batch.batchId });
  return batch.environment.client.workflow.start(BATCH_WORKFLOW, {
    workflowId: `follow-up-batch:${batch.batchId}`,
    taskQueue: batch.environment.taskQueue,
    args: [{ items, ...input }],
  });
}

describe('what the server has forgotten', () => {
  it.concurrent('of a running batch is not sent again when somebody attaches', async () => {
    const batch = new BatchOfTest(await open());
    const { client, taskQueue } = batch.environment;
    batch.add({}, { prompt: LARGE });
    batch.add({}, { prompt: LARGE });
    batch.add(endless, { prompt: LARGE });
    await batch.start();
    await batch.progressWhen(({ settled, pages }) => settled === 2 && pages.done === 2);
    for (const index of [0, 1]) await forget(await batch.itemHandle(index));
    for (const page of [1, 2]) await forget(await batch.pageHandle(page));
    expect(await batch.start()).toMatchObject({ attached: 'running', pages: 3 });
    await expect((await batch.pageHandle(1)).describe()).rejects.toThrow();
    // Even a page that somebody hands over once more is sent away.
    const { items } = await batch.batches.check(batch.requests, { batchId: batch.batchId });
    const { run, workflowId: batchWorkflowId } = await batch.handle.describe();
    const [page] = cutPages(items);
    if (page === undefined) throw new Error('there are no pages');
    const again: PageInput = { batchWorkflowId, batchId: batch.batchId, run, page };
    await client.workflow.start(BATCH_PAGE_WORKFLOW, {
      workflowId: pageWorkflowId(batch.batchId, run, 1),
      taskQueue,
      args: [again],
    });
    await batch.sent(3);
    batch.endTurns();
    const { state, summary } = await batch.handle.result();
    expect({ state, settled: summary?.settled }).toEqual({ state: 'done', settled: 3 });
    expect(batch.messages()).toEqual([1, 1, 1]);
    await expect((await batch.pageHandle(1)).result()).resolves.toMatchObject({ ends: [], notStarted: 1 });
  });

  it.concurrent('of a cancelled batch is not sent again when it goes on', async () => {
    const batch = new BatchOfTest(await open());
    batch.add();
    batch.add(endless);
    batch.add(endless);
    await batch.start({ concurrency: 1 });
    await batch.sent(2);
    await batch.handle.cancel();
    await batch.handle.result();
    for (const index of [0, 1]) await forget(await batch.itemHandle(index));
    await batch.start();
    await batch.sent(3);
    batch.endTurns();
    expect((await batch.handle.result()).summary).toMatchObject({ settled: 3, byStatus: { completed: 2 } });
    expect(batch.messages()).toEqual([1, 1, 1]);
    // The server terminates what it deletes: the page of the cancelled batch may still have seen that.
    const [lost] = (await batch.handle.settled()).filter(({ outcome }) => outcome !== 'completed');
    expect(['gone', 'terminated']).toContain(lost?.outcome);
    expect(lost?.delivery).toBeNull();
    // Nobody can tell: only who takes the risk sends it once more.
    expect(await batch.handle.retry()).toBeNull();
    await batch.handle.retry({ includeUnknown: true });
    await batch.sent(4);
    batch.endTurns();
    await batch.handle.result();
    expect(batch.messages()).toEqual([1, 2, 1]);
  });

  it.concurrent('of a terminated batch is not sent again when it goes on', async () => {
    const batch = new BatchOfTest(await open());
    batch.add();
    batch.add(endless);
    batch.add(endless);
    const { workflowId } = await batch.start({ concurrency: 1 });
    await batch.sent(2);
    const page = await batch.pageHandle(1);
    await batch.environment.client.workflow.getHandle(workflowId).terminate();
    await page.terminate();
    for (const index of [0, 1]) await forget(await batch.itemHandle(index));
    await batch.start();
    await batch.sent(3);
    batch.endTurns();
    expect((await batch.handle.result()).summary).toMatchObject({
      byStatus: { completed: 1 },
      byFailure: { gone: 2 },
    });
    expect(batch.messages()).toEqual([1, 1, 1]);
  });

  it.concurrent('can’t be told: the batch does not go on, and its results are an error', async () => {
    const batch = new BatchOfTest(await open());
    batch.add();
    batch.add(endless);
    await batch.start();
    await batch.sent(2);
    await batch.handle.cancel();
    await batch.handle.result();
    await forget(await batch.pageHandle(1));
    await expect(batch.start()).rejects.toMatchObject({ code: 'BATCH_FORGOTTEN' });
    await expect(batch.handle.retry()).rejects.toMatchObject({ code: 'BATCH_FORGOTTEN' });
    await expect(batch.handle.settled()).rejects.toMatchObject({ code: 'RESULTS_UNREADABLE' });
    expect(batch.messages()).toEqual([1, 1]);
  });
});

describe('an item', () => {
  it.concurrent('that somebody deletes while it runs has an end of its own, and its batch ends', async () => {
    const batch = new BatchOfTest(await open());
    batch.add(endless);
    const attached = batch.add(endless, { requestId: 'attached' });
    batch.add();
    await batch.environment.send({ ...attached, requestId: 'attached', prompt: 'Rebase on main.' });
    await batch.start();
    await batch.sent(3);
    for (const index of [0, 1]) await forget(await batch.itemHandle(index));
    const { state, summary } = await batch.handle.result();
    expect(state).toBe('done');
    expect(summary).toMatchObject({ settled: 3, byStatus: { completed: 1 } });
    // The server terminates what it deletes: whoever hears of that first.
    const ends = await batch.handle.settled();
    const deleted = ends.filter(({ outcome }) => outcome !== 'completed');
    expect(deleted).toHaveLength(2);
    for (const { outcome, delivery } of deleted) {
      expect(['gone', 'terminated']).toContain(outcome);
      expect(delivery).toBeNull();
    }
  });

  it.concurrent('that runs without ever having had a workflow task is woken', async () => {
    const batch = new BatchOfTest(await open());
    const key = batch.add({}, { requestId: 'delayed' });
    const { client, taskQueue } = batch.environment;
    // Like one whose page was ended at the wrong moment, its history has nothing but the start.
    const delayed = await client.workflow.start('followUp', {
      workflowId: followUpWorkflowId(key.projectId, key.jobId, 'delayed'),
      taskQueue,
      args: [{ ...batch.requests[0], ...key }],
      startDelay: '1 hour',
    });
    await batch.start();
    const signals = async () =>
      ((await delayed.fetchHistory()).events ?? []).flatMap(
        ({ workflowExecutionSignaledEventAttributes: signal }) => signal?.signalName ?? [],
      );
    await eventually('it is woken', async () => (await signals()).length > 0);
    expect(await signals()).toEqual([SIGNAL_WAKE]);
    await delayed.terminate();
    expect((await batch.handle.result()).summary).toMatchObject({ byFailure: { terminated: 1 } });
  });

  it.concurrent('has one fate, whatever is typed after a cancelled batch', async () => {
    const batch = new BatchOfTest(await open());
    batch.add(endless);
    for (let item = 1; item < 8; item += 1) batch.add();
    await batch.start({ concurrency: 1 });
    await batch.sent(1);
    await batch.handle.cancel({ followUps: true });
    await batch.handle.result();
    expect(await batch.handle.retry()).toMatchObject({ attached: false });
    expect((await batch.handle.result()).summary).toMatchObject({
      settled: 8,
      byStatus: { completed: 7 },
      byFailure: { cancelled: 1 },
    });
    expect(await batch.start()).toMatchObject({ attached: 'ended' });
    expect(await batch.handle.retry()).toBeNull();
    expect(batch.messages()).toEqual(Array(8).fill(1));
  });

  it.concurrent('whose name a foreign client has given to another message is a conflict', async () => {
    const batch = new BatchOfTest(await open());
    const key = batch.add(endless, { requestId: 'mine', prompt: 'Ours.' });
    const foreign = await batch.environment.send({ ...key, requestId: 'mine', prompt: 'Theirs.', ...QUICK });
    await batch.sent(1);
    await batch.start();
    const { summary } = await batch.handle.result();
    expect(summary).toMatchObject({ byStatus: {}, byFailure: { conflict: 1 } });
    const [end] = await batch.handle.settled();
    expect(end).toMatchObject({ outcome: 'conflict', delivery: 'not-sent' });
    expect(await batch.handle.retry()).toBeNull();
    expect(batch.posts().map(({ prompt }) => prompt?.text)).toEqual(['Theirs.']);
    await foreign.handle.terminate();
  });
});

describe('a batch that is cancelled with what it runs', () => {
  it.concurrent('ends what it has attached to, and leaves what somebody else has started', async () => {
    const batch = new BatchOfTest(await open());
    const theirs = batch.add(endless, { requestId: 'theirs' });
    const ours = batch.add({ status: 'active', turn: { durationMs: null } }, { whenActive: 'wait' });
    const foreign = await batch.environment.send({
      ...theirs,
      requestId: 'theirs',
      prompt: 'Rebase on main.',
      deadline: '2m',
    });
    await batch.sent(1);
    // The first run has started the second item, which waits; the second run attaches to it.
    await batch.start();
    const item = await batch.itemHandle(1);
    await batch.progressWhen(({ open: running }) => running === 2);
    await batch.handle.cancel();
    await batch.handle.result();
    await batch.start();
    await batch.progressWhen(({ open: running }) => running === 2);
    await batch.handle.cancel({ followUps: true });
    const { state, summary } = await batch.handle.result();
    expect({ state, summary }).toMatchObject({
      state: 'cancelled',
      summary: { settled: 2, byFailure: { cancelled: 1, 'left-running': 1 } },
    });
    expect((await item.describe()).status.name).toBe('CANCELLED');
    expect((await foreign.handle.describe()).status.name).toBe('RUNNING');
    expect(batch.posts(ours)).toEqual([]);
    await foreign.handle.terminate();
  });
});

describe('a page that is told to close while its items are being started', () => {
  it.concurrent(
    'closes once they have started: the batch, started again, sends each once',
    async () => {
      const batch = new BatchOfTest(await open());
      const keys = Array.from({ length: MANY }, () => batch.add(endless, { deadline: '3m' }));
      await batch.start({ concurrency: MANY });
      const { run } = await batch.handle.describe();
      const page = batch.environment.client.workflow.getHandle(pageWorkflowId(batch.batchId, run, 1));
      const events = async () => (await page.fetchHistory()).events ?? [];
      await eventually(
        'the server has been asked for the items',
        async () =>
          (await events()).some(({ startChildWorkflowExecutionInitiatedEventAttributes: asked }) => asked),
        { intervalMs: 10 },
      );
      await page.signal(SIGNAL_ALLOT, { places: 0, tolerated: null, mode: 'leave' });
      await page.result();
      // As long as its items come in, the server refuses a page that wants to close, and then loses the others.
      const starts = (await events()).map((event) => event.childWorkflowExecutionStartedEventAttributes);
      const refusals = (await events()).map((event) => event.workflowTaskFailedEventAttributes);
      expect(starts.filter(Boolean)).toHaveLength(MANY);
      expect(refusals.slice(0, starts.findLastIndex(Boolean)).filter(Boolean)).toEqual([]);
      // It may have ended by itself, without its page.
      await batch.handle.cancel().catch((error: unknown) => {
        if (!hasCode(error, 'ALREADY_ENDED')) throw error;
      });
      await batch.handle.result();
      // A turn that begins later would not end.
      await batch.sent(MANY);
      for (const key of keys) batch.environment.sandbox.changeJob(key, { status: 'completed' });
      await batch.start({ concurrency: MANY });
      expect((await batch.handle.result()).summary).toMatchObject({ settled: MANY });
      expect(batch.messages()).toEqual(Array(MANY).fill(1));
    },
    150_000,
  );
});

describe('a page', () => {
  it.concurrent('whose batch is terminated closes, also one that waits for its turn', async () => {
    const batch = new BatchOfTest(await open());
    batch.add(endless, { prompt: LARGE });
    batch.add(endless, { prompt: LARGE });
    const { workflowId } = await batch.start({ concurrency: 1 });
    await batch.sent(1);
    await batch.progressWhen(({ pages }) => pages.handedOver === 2);
    // The page that arrives first begins first.
    const messages = batch.messages();
    const [begun, waiting] = [
      await batch.pageHandle(messages.indexOf(1) + 1),
      await batch.pageHandle(messages.indexOf(0) + 1),
    ];
    await batch.environment.client.workflow.getHandle(workflowId).terminate();
    await expect(waiting.result()).resolves.toMatchObject({ ends: [], left: [], notStarted: 1 });
    batch.endTurns();
    await expect(begun.result()).resolves.toMatchObject({ ends: [{ outcome: 'completed' }] });
    expect(batch.messages()).toEqual(messages);
  });

  it.concurrent('looks less often for what has become of its batch while nothing of it is open', async () => {
    const batch = new BatchOfTest(await open());
    batch.add(endless, { prompt: LARGE });
    batch.add(endless, { prompt: LARGE });
    await batch.start({ concurrency: 1 });
    await batch.sent(1);
    await batch.progressWhen(({ pages }) => pages.handedOver === 2);
    const { client } = batch.environment;
    const { run, workflowId: batchWorkflowId } = await batch.handle.describe();
    const nextLookOf = async (page: number): Promise<unknown> => {
      const { workflowId, runId } = await (await batch.pageHandle(page)).describe();
      const activity = new MockActivityEnvironment(
        { attempt: 2, workflowExecution: { workflowId, runId } },
        { client },
      );
      const looked = activity.run(pageTroubleEvery(1_000), { batchWorkflowId, run, known: [] });
      return looked.catch(
        (error: unknown) => (error as { readonly nextRetryDelay?: unknown }).nextRetryDelay,
      );
    };
    const messages = batch.messages();
    expect(await nextLookOf(messages.indexOf(1) + 1)).toBe(1_000);
    expect(await nextLookOf(messages.indexOf(0) + 1)).toBe(4_000);
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
      const { events } = await page.fetchHistory();
      expect(events?.map((event) => event.workflowExecutionSignaledEventAttributes?.signalName)).toContain(
        SIGNAL_ALLOT,
      );
      await page.terminate();
    },
  );

  it.concurrent('of a retry that is reset does not act upon an old answer again', async () => {
    const batch = new BatchOfTest(await open());
    const { sandbox, client } = batch.environment;
    const key = batch.add(endless);
    sandbox.setFault({
      name: 'status',
      ...key,
      operation: 'message',
      times: 1,
      parameters: { code: 422 },
    });
    batch.add(endless);
    await batch.start();
    await batch.progressWhen(({ settled }) => settled === 1);
    await batch.handle.cancel();
    await batch.handle.result();
    // The item gets a second run, whose message is processed, and which then fails.
    await batch.handle.retry();
    await batch.environment.sandbox.journal.waitFor({ ...key, operation: 'message', processed: true });
    await (await batch.itemHandle(0)).terminate();
    await batch.progressWhen(({ settled }) => settled === 1);
    // Back to the workflow task that was told that the first run was rejected.
    const { run } = await batch.handle.describe();
    const page = client.workflow.getHandle(pageWorkflowId(batch.batchId, run, 1));
    const events = (await page.fetchHistory()).events ?? [];
    const asked = events.find(
      ({ activityTaskScheduledEventAttributes: scheduled }) =>
        scheduled?.activityType?.name === 'followUpEnd',
    );
    const told = events.findIndex(({ activityTaskCompletedEventAttributes: completed }) =>
      asked?.eventId?.eq(completed?.scheduledEventId ?? 0),
    );
    const task = events.slice(told).find((event) => event.workflowTaskCompletedEventAttributes);
    await resetTo(page, task?.eventId ?? null);
    batch.endTurns();
    expect((await batch.handle.result()).summary).toMatchObject({ byFailure: { terminated: 1 } });
    // The rejected one, and that of the second run.
    expect(batch.messages()).toEqual([2, 1]);
  });

  it.concurrent('that is reset after its batch has ended asks for its ends once more', async () => {
    const batch = new BatchOfTest(await open());
    batch.add();
    batch.add();
    await batch.start();
    await batch.handle.result();
    const page = await batch.pageHandle(1);
    await page.result();
    await resetToStart(page);
    await page.client.getHandle(page.workflowId).result();
    const ends = await batch.handle.settled();
    expect(ends.map(({ outcome }) => outcome)).toEqual(['completed', 'completed']);
    expect(batch.messages()).toEqual([1, 1]);
  });

  it.concurrent('that is reset starts nothing that it may have started before', async () => {
    const batch = new BatchOfTest(await open());
    batch.add();
    batch.add();
    batch.add(endless);
    await batch.start({ concurrency: 3 });
    await batch.progressWhen(({ settled }) => settled === 2);
    await forget(await batch.itemHandle(0));
    await resetToStart(await batch.pageHandle(1));
    batch.endTurns();
    expect((await batch.handle.result()).summary).toMatchObject({
      settled: 3,
      byStatus: { completed: 2 },
      byFailure: { gone: 1 },
    });
    expect(batch.messages()).toEqual([1, 1, 1]);
  });
});

describe('a batch that came with its items', () => {
  it.concurrent('and is cancelled with its open items tells how they ended', async () => {
    const batch = new BatchOfTest(await open());
    batch.add(endless);
    batch.add(endless);
    await startWithItems(batch);
    await batch.sent(2);
    await batch.handle.cancel({ followUps: true });
    expect(await batch.handle.result()).toMatchObject({
      state: 'cancelled',
      summary: { settled: 2, byFailure: { cancelled: 2 } },
    });
    expect(await batch.handle.settled()).toHaveLength(2);
  });

  it.concurrent('and is reset goes on with the pages that are there', async () => {
    const batch = new BatchOfTest(await open());
    batch.add({}, { prompt: LARGE });
    batch.add(endless, { prompt: LARGE });
    const handle = await startWithItems(batch);
    await batch.sent(2);
    await resetToStart(handle);
    await batch.progressWhen(({ pages }) => pages.handedOver === 2);
    batch.endTurns();
    const { state, summary } = await batch.handle.result();
    expect({ state, settled: summary?.settled }).toEqual({ state: 'done', settled: 2 });
    expect(batch.messages()).toEqual([1, 1]);
  });

  it.concurrent('is tried again by its id alone', async () => {
    const batch = new BatchOfTest(await open());
    const rejected = batch.add();
    batch.environment.sandbox.setFault({
      name: 'status',
      ...rejected,
      operation: 'message',
      times: 1,
      parameters: { code: 422 },
    });
    await startWithItems(batch);
    await batch.handle.result();
    await batch.handle.retry();
    expect((await batch.handle.result()).summary).toMatchObject({
      byStatus: { completed: 1 },
    });
  });
});

describe('a foreign caller', () => {
  const failureOf = async (handle: WorkflowHandle): Promise<unknown> =>
    handle.result().then(
      () => 'a result',
      (error: unknown) => (error instanceof WorkflowFailedError ? error.cause : error),
    );

  it.concurrent.each([
    ['an empty item', { items: [{}] }],
    ['a plain request', { items: [{ projectId: 'p', jobId: 'j', prompt: 'x' }] }],
    [
      'half a character',
      {
        items: [
          {
            key: 'k',
            request: { projectId: '\ud800', jobId: 'j', prompt: 'x' },
            promptDigest: 'a'.repeat(64),
          },
        ],
      },
    ],
    ['no list', { items: { length: 1 } }],
    ['a number', 7],
  ])('that starts a batch with %s gets a failure that names the problem', async (_, input) => {
    const { client, taskQueue } = await open();
    const workflowId = `follow-up-batch:foreign-${randomUUID().slice(0, 8)}`;
    const handle = await client.workflow.start(BATCH_WORKFLOW, { workflowId, taskQueue, args: [input] });
    expect(await failureOf(handle)).toMatchObject({
      type: 'InvalidBatch',
      message: expect.stringMatching(/^Invalid batch: (items?|input)\b.*Nothing was sent\.$/),
    });
  });

  it.concurrent('that starts a page with nonsense gets a failure', async () => {
    const { client, taskQueue } = await open();
    const workflowId = `follow-up-batch:foreign-${randomUUID().slice(0, 8)}:page-1`;
    const handle = await client.workflow.start(BATCH_PAGE_WORKFLOW, {
      workflowId,
      taskQueue,
      args: [{ page: { items: [{}] } }],
    });
    expect(await failureOf(handle)).toMatchObject({ type: 'InvalidBatch' });
  });

  it.concurrent('that signals nonsense stalls neither a batch nor its page', async () => {
    const batch = new BatchOfTest(await open());
    batch.add(endless);
    const { workflowId } = await batch.start();
    await batch.sent(1);
    const page = await batch.pageHandle(1);
    for (const nonsense of [null, 'text', {}, { run: 'r', page: 1 }, { places: 'many', mode: 'run' }]) {
      await batch.environment.client.workflow.getHandle(workflowId).signal('report', nonsense);
      await page.signal('allot', nonsense);
    }
    batch.endTurns();
    expect((await batch.handle.result()).summary).toMatchObject({
      byStatus: { completed: 1 },
    });
  });
});
