import { afterAll, expect, it } from '@jest/globals';
import { jobLockWorkflowId } from '../../../src/contract/ids';
import { TestBatch } from '../../harness/test-batch';
import { Environment } from '../../harness/environment';
import { eventually } from '../../../tools/lib/eventually';
import {
  ACCEPTED_BY_RESPONSE,
  ENDLESS_TURN,
  type FollowUpUnderTest,
  NOT_SENT_DELIVERY,
} from '../../harness/follow-up-under-test';
import { Operator } from '../../harness/operator';
import { eventsOf, resetToTask, workflowTasks } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';
import { temporal } from '../../harness/temporal';
import { TemporalGate } from '../../harness/temporal-gate';
import type { JobKey } from '../../../sandbox';

const { open } = sharedEnvironment();
const WAIT = { whenActive: 'wait' } as const;

const lockOf = async ({ projectId, jobId }: JobKey) =>
  (await open()).client.workflow.getHandle(jobLockWorkflowId(projectId, jobId)).describe();

/** Waits until a follow-up waits for the job lock that another follow-up holds. */
const waitUntilBlockedBy = (following: FollowUpUnderTest, holder: FollowUpUnderTest) =>
  following.waitForProgress(
    ({ lastResponse, phase }) =>
      phase === 'waiting-for-job' &&
      lastResponse === `waiting for the job lock, which ${holder.handle.workflowId} holds`,
  );

/** Starts the next attempt to acquire the lock immediately, instead of ten seconds after the last attempt. */
const tryAgain = async ({ handle }: FollowUpUnderTest) =>
  new Operator((await open()).client).reset(handle.workflowId, 'waitForJobLock');

async function lockWaitAttempt({ handle }: FollowUpUnderTest): Promise<number | undefined> {
  const { raw } = await handle.describe();
  const pending = raw.pendingActivities?.find(({ activityType }) => activityType?.name === 'waitForJobLock');
  return pending && Number(pending.attempt);
}

// Proves S2.
it.concurrent(
  'a second follow-up to the same job waits until the first one has ended, and each result has the link of its own turn',
  async () => {
    const environment = await open();
    // The requests have no `whenActive`, because `wait` is the default.
    const first = await environment.follow(ENDLESS_TURN, { whenActive: undefined });
    await first.waitForRequest({ operation: 'message' });
    const second = await environment.send({ ...first.key, whenActive: undefined });
    await waitUntilBlockedBy(second, first);
    // No worker runs the lock, and its memo names the holder.
    const { memo, historyLength } = await lockOf(first.key);
    expect(historyLength).toBe(1);
    const holder = { workflowId: first.handle.workflowId, firstRunId: first.firstRunId };
    expect(memo).toEqual({ followUpJobLockHolder: holder });

    first.changeJob({ status: 'completed', prLink: 'https://example.test/pull/1' });
    const ended = { status: 'completed', prLink: 'https://example.test/pull/1' };
    expect(await first.result()).toMatchObject({ ...ended, receipt: { polls: expect.any(Number) } });
    expect(first.posts()).toHaveLength(1);
    await tryAgain(second);
    await second.waitForRequest({ operation: 'message' }, { atLeast: 2 });
    await second.waitForProgress(({ responseCounts }) => (responseCounts.active ?? 0) > 0);
    second.changeJob({ status: 'completed', prLink: 'https://example.test/pull/2' });
    const prLink = 'https://example.test/pull/2';
    const receipt = { baseline: ended, delivery: ACCEPTED_BY_RESPONSE, evidence: 'seen-active' };
    expect(await second.result()).toMatchObject({ status: 'completed', prLink, receipt });
    expect((await lockOf(first.key)).status.name).toBe('TERMINATED');
  },
);

// Proves S2.
it.concurrent('a follow-up holds the job lock across a reset, and until the new run has ended', async () => {
  const environment = await open();
  // The job is idle, but its status is not accepted for an hour.
  const options = { ...WAIT, maxStaleness: '1h', deadline: '3h' } as const;
  const first = await environment.follow(ENDLESS_TURN, options);
  await first.waitForProgress(({ phase }) => phase === 'watching');
  first.changeJob({ status: 'completed' });
  const next = (deadline: '10m' | '4s' = '10m') => environment.send({ ...first.key, ...WAIT, deadline });
  const late = await next('4s');
  const second = await next();
  await waitUntilBlockedBy(second, first);
  const cancelled = await next();
  await waitUntilBlockedBy(cancelled, first);
  await cancelled.handle.cancel();
  expect((await cancelled.cancelledReceipt()).delivery).toEqual(NOT_SENT_DELIVERY);

  const resetRun = await resetToTask(first.handle, (await workflowTasks(first.handle))[0]);
  await tryAgain(second);
  await eventually(
    'the second follow-up has made another attempt to acquire the lock',
    async () => ((await lockWaitAttempt(second)) ?? 0) > 1,
  );
  const { type, details } = await late.failure();
  expect(type).toBe('DeadlineExceeded');
  expect(details.receipt.delivery).toEqual(NOT_SENT_DELIVERY);
  expect(first.posts()).toHaveLength(1);

  // A holder that was terminated can't release the lock: the next attempt acquires it.
  await resetRun.terminate();
  await tryAgain(second);
  await second.waitForRequest({ operation: 'message' }, { atLeast: 2 });
  await second.handle.terminate();
});

// Proves S2.
it.concurrent(
  'a follow-up acquires the job lock of a terminated follow-up at its first attempt',
  async () => {
    const environment = await open();
    const first = await environment.follow(ENDLESS_TURN, WAIT);
    await first.waitForRequest({ operation: 'message' });
    await first.handle.terminate();
    expect((await lockOf(first.key)).status.name).toBe('RUNNING');
    first.changeJob({ status: 'completed' });
    const second = await environment.send({ ...first.key, ...WAIT });
    await second.waitForRequest({ operation: 'message' }, { atLeast: 2 });
    const types = (await eventsOf(second.handle)).map(
      (event) => event.activityTaskScheduledEventAttributes?.activityType?.name,
    );
    expect(types).not.toContain('waitForJobLock');
    second.changeJob({ status: 'completed' });
    await second.result();
    expect((await lockOf(first.key)).status.name).toBe('TERMINATED');
  },
);

// Proves S2.
it.concurrent('the items of a batch also acquire the job lock', async () => {
  const environment = await open();
  const first = await environment.follow(ENDLESS_TURN, WAIT);
  await first.waitForRequest({ operation: 'message' });
  const batch = new TestBatch(environment);
  batch.addRequest(first.key, WAIT);
  await batch.start();
  const [workflowId = ''] = await batch.itemIds();
  const waits = async () => {
    const { raw } = await environment.client.workflow.getHandle(workflowId).describe();
    return raw.pendingActivities?.some(({ activityType }) => activityType?.name === 'waitForJobLock');
  };
  await eventually('the item waits for the lock', waits);
  expect(first.posts()).toHaveLength(1);
  first.changeJob({ status: 'completed' });
  await first.result();
  await new Operator(environment.client).reset(workflowId, 'waitForJobLock');
  await first.waitForRequest({ operation: 'message' }, { atLeast: 2 });
  first.changeJob({ status: 'completed' });
  expect(await batch.handle.result()).toMatchObject({ summary: { byStatus: { completed: 1 } } });
  expect((await lockOf(first.key)).status.name).toBe('TERMINATED');
});

let gate: TemporalGate | undefined;
afterAll(() => gate?.close());

// Proves S2.
it('for an idle job, the job lock costs two requests to the Temporal server and one event', async () => {
  gate = await TemporalGate.open(temporal().address);
  const environment = await Environment.open({ address: gate.address });
  const times = {
    polling: { initial: '200ms', growth: 0, maximum: '200ms', jitter: 0 },
    maxStaleness: '0s',
  } as const;
  const costOf = async (whenActive: 'wait' | 'send') => {
    const following = await environment.follow({}, { ...times, whenActive });
    expect(await following.outcomeSummary()).toMatchObject({ status: 'completed', posts: [true] });
    const requests = gate?.methodsContaining(jobLockWorkflowId(following.key.projectId, following.key.jobId));
    const events = await eventsOf(following.handle);
    const markers = events.filter((event) => event.markerRecordedEventAttributes);
    return { requests, events: events.length, markers: markers.length };
  };
  const without = await costOf('send');
  const withLock = await costOf('wait');
  await environment.close();
  expect(without.requests).toEqual([]);
  expect(withLock.requests).toEqual(['StartWorkflowExecution', 'TerminateWorkflowExecution']);
  expect([without.markers, withLock.markers]).toEqual([1, 2]);
  expect(withLock.events).toBe(without.events + 1);
});
