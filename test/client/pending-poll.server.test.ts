import { describe, expect, it } from '@jest/globals';
import { Client, type ClientInterceptors, type WorkflowClientInterceptor } from '@temporalio/client';
import type { DataConverter, PayloadCodec } from '@temporalio/common';
import { FollowUpClient, type FollowUpProgress } from '../../src/client';
import type { FollowUpRequest } from '../../src/core/request';
import { eventually } from '../harness/eventually';
import { type Following, type Environment } from '../harness/environment';
import { sharedEnvironment } from '../harness/shared-environment';
import { dueAt, pendingRead, SOON, untilAttempt, untilItWaits } from '../harness/pending-poll';
import { clientOf } from './client-under-test';

const { open } = sharedEnvironment({ inProcessPolls: 0 });
const { open: openWithShortPolls } = sharedEnvironment({ inProcessPolls: 0, pollLimitMs: 3_000 });
const { open: openInProcess } = sharedEnvironment();

/** A turn that ends only when the test says so. */
const endless = { turn: { durationMs: null } };
const TIMES = { polling: SOON, deadline: '10m' } as const;

async function progressOf(followUps: FollowUpClient, { handle }: Following): Promise<FollowUpProgress> {
  const report = await followUps.getHandle(handle.workflowId).progress();
  if (report.from !== 'worker') throw new Error('no worker answered');
  return report.progress;
}

async function nextAttemptAt(following: Following): Promise<number> {
  return dueAt((await pendingRead(following)) ?? {});
}

/** A follow-up whose patient read waits for minutes. */
async function waiting(
  job: Parameters<Environment['follow']>[0] = endless,
  asked: Partial<FollowUpRequest> = {},
) {
  const environment = await open();
  const following = await environment.follow(job, { ...TIMES, ...asked });
  await untilItWaits(environment.sandbox, following);
  return { environment, following };
}

/** A client with an interceptor or a codec of its own. */
function otherClient(
  { client: { connection }, taskQueue }: Environment,
  options: { interceptors?: ClientInterceptors; dataConverter?: DataConverter },
): FollowUpClient {
  return new FollowUpClient(new Client({ connection, ...options }), { taskQueue });
}

describe('the progress during a patient read', () => {
  it.concurrent('has its answers, and the server’s time of its next one', async () => {
    const { environment, following } = await waiting();
    // What the workflow itself answers.
    const own = await following.handle.query<FollowUpProgress>('progress');
    expect(own).toMatchObject({ polls: 2, observed: { active: 2 } });
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
    const following = await environment.follow(endless, TIMES);
    // The first heartbeat comes with the first answer, the second one 24 s later.
    const followUps = clientOf(environment);
    const progress = await eventually('three polls', () => progressOf(followUps, following), {
      until: ({ polls }) => polls > 2,
    });
    expect(progress).toMatchObject({ phase: 'watching', polls: 3, observed: { active: 3 } });
    expect((await pendingRead(following))?.attempt).toBe(1);
    await following.handle.terminate();
  });

  it.concurrent('has no next read while an operator has paused the activity', async () => {
    const { environment, following } = await waiting();
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

  it.concurrent('has a read that was counted between its two questions', async () => {
    const environment = await open();
    const following = await environment.follow(endless, { polling: SOON, deadline: '10m' });
    await untilItWaits(environment.sandbox, following);
    const { polls } = await progressOf(clientOf(environment), following);
    let described = 0;
    const interceptor: WorkflowClientInterceptor = {
      describe: async (input, next) => {
        described += 1;
        if (described === 1) await following.handle.executeUpdate('pollNow');
        return next(input);
      },
    };
    const after = await progressOf(
      otherClient(environment, { interceptors: { workflow: [interceptor] } }),
      following,
    );
    expect([described, after.polls]).toEqual([2, polls + 1]);
    await following.handle.terminate();
  });

  it.concurrent('is decoded by the client’s own codecs', async () => {
    const { environment, following } = await waiting();
    const decoded: string[] = [];
    const codec: PayloadCodec = {
      encode: (payloads) => Promise.resolve(payloads),
      decode: (payloads) => {
        decoded.push(...payloads.map(({ data }) => Buffer.from(data ?? []).toString()));
        return Promise.resolve(payloads);
      },
    };
    const { observed } = await progressOf(
      otherClient(environment, { dataConverter: { payloadCodecs: [codec] } }),
      following,
    );
    expect(observed).toHaveProperty(['http 429'], 1);
    expect(decoded).toContainEqual(expect.stringContaining('"nextReadAt":'));
    await following.handle.terminate();
  });

  it.concurrent('counts no read before the send, as no receipt does', async () => {
    const { environment, following } = await waiting(
      { status: 'active', ...endless },
      { whenActive: 'wait' },
    );
    const progress = await progressOf(clientOf(environment), following);
    expect(progress).toMatchObject({ phase: 'waiting', polls: 0, observed: {} });
    expect(progress.lastAnswer).toMatch(/^http 429/);
    expect(Date.parse(progress.nextPollAt ?? '')).toBe(await nextAttemptAt(following));
    await following.handle.terminate();
  });
});

describe('the progress when a patient read ends', () => {
  it.concurrent('between the two questions is the workflow’s own, with every answer once', async () => {
    const environment = await open();
    const following = await environment.follow(endless, TIMES);
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
    const progress = await progressOf(
      otherClient(environment, { interceptors: { workflow: [interceptor] } }),
      following,
    );
    const { followUp } = await following.result();
    expect(described).toBe(1);
    expect(progress).toMatchObject({ phase: 'done', polls: followUp.polls, observed: followUp.observed });
  });

  it.concurrent('again and again never falls, and never counts an answer that was not made', async () => {
    const environment = await openWithShortPolls();
    const following = await environment.follow(endless, TIMES);
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
    const { environment, following } = await waiting();
    const followUps = clientOf(environment);
    const before = await progressOf(followUps, following);
    const polled = await followUps.getHandle(following.handle.workflowId).pollNow();
    // The 429 of the patient read holds for the project, whoever asks.
    const lastAnswer = expect.stringMatching(/^project cooling down/);
    expect(polled).toMatchObject({ lastAnswer, nextPollAt: before.nextPollAt });
    expect(polled.polls).toBe(before.polls + 1);
    expect(polled.observed).toEqual({ ...before.observed, 'cooling down': 1 });
    const extended = await followUps.getHandle(following.handle.workflowId).extendDeadline('2h');
    expect(extended).toMatchObject({ polls: polled.polls, nextPollAt: before.nextPollAt });
    await following.handle.terminate();
  });
});
