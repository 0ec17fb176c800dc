import { describe, expect, it } from '@jest/globals';
import { Client, type WorkflowClientInterceptor } from '@temporalio/client';
import type { PayloadCodec } from '@temporalio/common';
import { FollowUpClient, type FollowUpProgress } from '../../src/client';
import type { FollowUpRequest } from '../../src/core/request';
import { eventually } from '../harness/eventually';
import { type Following, type Environment } from '../harness/environment';
import { sharedEnvironment } from '../harness/shared-environment';
import { dueAt, pendingRead, SOON, untilAttempt, untilItWaits } from '../harness/pending-poll';
import { clientOf } from './client-under-test';

const open = sharedEnvironment({ inProcessPolls: 0 });
const openWithShortPolls = sharedEnvironment({ inProcessPolls: 0, pollLimitMs: 3_000 });
const openInProcess = sharedEnvironment();

/** A turn that ends only when the test says so. */
const endless = { turn: { durationMs: null } };

async function progressOf(followUps: FollowUpClient, { handle }: Following): Promise<FollowUpProgress> {
  const report = await followUps.getHandle(handle.workflowId).progress();
  if (report.from !== 'worker') throw new Error('no worker answered');
  return report.progress;
}

async function nextAttemptAt(following: Following): Promise<number> {
  const pending = await pendingRead(following);
  return pending === undefined ? 0 : dueAt(pending);
}

/** What the workflow itself answers. */
function ownProgress({ handle }: Following): Promise<FollowUpProgress> {
  return handle.query<FollowUpProgress>('progress');
}

/** A client with an interceptor or a codec of its own. */
function otherClient(
  environment: Environment,
  options: { interceptor?: WorkflowClientInterceptor; codec?: PayloadCodec },
): FollowUpClient {
  const { connection, options: own } = environment.client;
  const client = new Client({
    connection,
    namespace: own.namespace,
    ...(options.interceptor && { interceptors: { workflow: [options.interceptor] } }),
    ...(options.codec && { dataConverter: { payloadCodecs: [options.codec] } }),
  });
  return new FollowUpClient(client, { taskQueue: environment.taskQueue });
}

describe('the progress during a patient read', () => {
  it.concurrent('has its answers, and the server’s time of its next one', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SOON, deadline: '10m' });
    await untilItWaits(environment.sandbox, following);
    expect(await ownProgress(following)).toMatchObject({
      polls: 2,
      observed: { active: 2 },
    });

    const progress = await progressOf(clientOf(environment), following);
    const polls = following.gets() - 1;
    expect(progress).toMatchObject({ phase: 'watching', polls });
    expect(progress.observed).toEqual({ active: polls - 1, 'http 429': 1 });
    expect(progress.lastAnswer).toMatch(/^http 429/);
    expect(Date.parse(progress.nextPollAt ?? '')).toBe(await nextAttemptAt(following));
    await following.handle.terminate();
  });

  it.concurrent('in the process of its worker has the answers of its heartbeats', async () => {
    const environment = await openInProcess();
    const following = await environment.follow(endless, { polling: SOON, deadline: '10m' });
    // The first heartbeat comes with the first answer, the second one 24 s later.
    const followUps = clientOf(environment);
    const progress = await progressWhen(followUps, following, ({ polls }) => polls > 2);
    expect(progress).toMatchObject({ phase: 'watching', polls: 3, observed: { active: 3 } });
    expect((await pendingRead(following))?.attempt).toBe(1);
    await following.handle.terminate();
  });

  it.concurrent('has the trouble that it absorbs', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SOON, deadline: '10m' });
    await untilAttempt(following, 2);
    environment.sandbox.setFault({ name: 'http-503', ...following.key, operation: 'get' });
    const followUps = clientOf(environment);
    const progress = await progressWhen(followUps, following, ({ observed }) => 'http 503' in observed);
    expect(progress.lastAnswer).toMatch(/^http 503/);
    expect(progress.polls).toBe((progress.observed.active ?? 0) + (progress.observed['http 503'] ?? 0));
    expect(progress.job?.status).toBe('active');
    await following.handle.terminate();
  });

  it.concurrent('says that a read is due that is under way', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SOON, deadline: '10m' });
    await untilAttempt(following, 2);
    environment.sandbox.setFault({ name: 'hold', ...following.key, operation: 'get', times: 1 });
    await environment.sandbox.journal.waitFor({ ...following.key, fault: 'hold' });
    const { nextPollAt } = await progressOf(clientOf(environment), following);
    const [before, held] = environment.sandbox.journal
      .entries({ ...following.key, operation: 'get' })
      .slice(-2);
    expect(held?.faults).toEqual(['hold']);
    expect(Date.parse(nextPollAt ?? '')).toBeGreaterThan(Date.parse(before?.time ?? ''));
    expect(Date.parse(nextPollAt ?? '')).toBeLessThanOrEqual(Date.parse(held?.time ?? ''));
    await following.handle.terminate();
  });

  it.concurrent('has no next read while an operator has paused the activity', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SOON, deadline: '10m' });
    await untilItWaits(environment.sandbox, following);
    const { workflowId } = following.handle;
    await environment.client.workflowService.pauseActivity({
      namespace: environment.client.options.namespace,
      execution: { workflowId },
      type: 'pollJob',
    });
    expect(await progressOf(clientOf(environment), following)).toMatchObject({ nextPollAt: null });
    expect((await progressOf(clientOf(environment), following)).observed).toHaveProperty(['http 429'], 1);
    await following.handle.terminate();
  });

  it.concurrent('counts no read before the send, as no receipt does', async () => {
    const environment = await open();
    const asked: Partial<FollowUpRequest> = { whenActive: 'wait', polling: SOON, deadline: '10m' };
    const following = await environment.follow({ status: 'active', ...endless }, asked);
    await untilItWaits(environment.sandbox, following);
    const progress = await progressOf(clientOf(environment), following);
    expect(progress).toMatchObject({ phase: 'waiting', polls: 0, observed: {} });
    expect(progress.lastAnswer).toMatch(/^http 429/);
    expect(Date.parse(progress.nextPollAt ?? '')).toBe(await nextAttemptAt(following));
    await following.handle.terminate();
  });

  it.concurrent('is decoded by the client’s own codecs', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SOON, deadline: '10m' });
    await untilItWaits(environment.sandbox, following);
    const decoded: string[] = [];
    const codec: PayloadCodec = {
      encode: (payloads) => Promise.resolve(payloads),
      decode: (payloads) => {
        decoded.push(...payloads.map(({ data }) => Buffer.from(data ?? []).toString()));
        return Promise.resolve(payloads);
      },
    };
    const { observed } = await progressOf(otherClient(environment, { codec }), following);
    expect(observed).toHaveProperty(['http 429'], 1);
    expect(decoded).toContainEqual(expect.stringContaining('"nextReadAt":'));
    await following.handle.terminate();
  });
});

describe('the progress when a patient read ends', () => {
  it.concurrent('between the two questions is the workflow’s own, with every answer once', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SOON, deadline: '10m' });
    await untilAttempt(following, 3);
    let described = 0;
    const interceptor: WorkflowClientInterceptor = {
      describe: async (input, next) => {
        described += 1;
        if (described === 1) {
          environment.sandbox.changeJob(following.key, { status: 'failed' });
          await following.progressWhen(({ phase }) => phase === 'done');
        }
        return next(input);
      },
    };
    const progress = await progressOf(otherClient(environment, { interceptor }), following);
    const { followUp } = await following.result();
    expect(described).toBe(1);
    expect(progress).toMatchObject({ phase: 'done', polls: followUp.polls, observed: followUp.observed });
  });

  it.concurrent('again and again never falls, and never counts an answer that was not made', async () => {
    const environment = await openWithShortPolls();
    const following = await environment.follow(endless, { polling: SOON, deadline: '10m' });
    const followUps = clientOf(environment);
    await untilAttempt(following, 1);
    const seen: number[] = [];
    const wrong: unknown[] = [];
    // A patience of three seconds is over after four of them at most.
    await eventually(
      'six more polls',
      async () => {
        const { polls, observed } = await progressOf(followUps, following);
        const gets = following.gets() - 1;
        if (polls !== observed.active || polls > gets) wrong.push({ polls, observed, gets });
        seen.push(polls);
        return polls >= (seen[0] ?? 0) + 6;
      },
      { intervalMs: 10 },
    );
    expect(wrong).toEqual([]);
    expect(seen).toEqual([...seen].sort((one, other) => one - other));
    const { events } = await following.handle.fetchHistory();
    const polls = (events ?? []).filter(
      ({ activityTaskScheduledEventAttributes: scheduled }) => scheduled?.activityType?.name === 'pollJob',
    );
    expect(polls.length).toBeGreaterThanOrEqual(2);
    await following.handle.terminate();
  });
});

describe('the answer of an update during a patient read', () => {
  it.concurrent('has its answers and the read that was asked for', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SOON, deadline: '10m' });
    await untilItWaits(environment.sandbox, following);
    const followUps = clientOf(environment);
    const before = await progressOf(followUps, following);
    const polled = await followUps.getHandle(following.handle.workflowId).pollNow();
    expect(polled).toMatchObject({ lastAnswer: 'active', nextPollAt: before.nextPollAt });
    expect(polled.polls).toBe(before.polls + 1);
    expect(polled.observed).toEqual({ ...before.observed, active: (before.observed.active ?? 0) + 1 });
    const extended = await followUps.getHandle(following.handle.workflowId).extendDeadline('2h');
    expect(extended).toMatchObject({ polls: polled.polls, nextPollAt: before.nextPollAt });
    await following.handle.terminate();
  });
});

/** The client's progress once it is as wanted. @throws Error when it is not within 20 seconds */
async function progressWhen(
  followUps: FollowUpClient,
  following: Following,
  wanted: (progress: FollowUpProgress) => boolean,
): Promise<FollowUpProgress> {
  return eventually('the progress is as wanted', () => progressOf(followUps, following), { until: wanted });
}
