import { describe, expect, it } from '@jest/globals';
import { Client, type WorkflowClientInterceptor } from '@temporalio/client';
import { FollowUpClient, type FollowUpProgress } from '../../src/client';
import { eventually } from '../harness/eventually';
import type { Environment } from '../harness/environment';
import { ENDLESS, type Following } from '../harness/following';
import { Operator } from '../harness/operator';
import { activities } from '../harness/reset';
import { sharedEnvironment } from '../harness/shared-environment';
import { dueAt, pendingRead, SOON, untilAttempt, untilItWaits } from '../harness/pending-poll';

const { open } = sharedEnvironment({ inProcessPolls: 0 });
const { open: openWithShortPolls } = sharedEnvironment({ inProcessPolls: 0, pollLimitMs: 500 });
const { open: openInProcess } = sharedEnvironment();

const TIMES = { polling: { ...SOON, initial: '100ms', maximum: '100ms' }, deadline: '10m' } as const;

async function progressOf(followUps: FollowUpClient, { handle }: Following): Promise<FollowUpProgress> {
  const report = await followUps.getHandle(handle.workflowId).progress();
  if (report.from !== 'worker') throw new Error('no worker answered');
  return report.progress;
}

/** A follow-up whose patient read waits for minutes. */
async function waiting() {
  const environment = await open();
  const following = await environment.follow(ENDLESS, TIMES);
  await untilItWaits(environment.sandbox, following);
  return { environment, following };
}

/** The progress with something that happens between its two questions, and how often the second one was asked. */
async function progressAround(
  between: () => Promise<unknown>,
  { client: { connection } }: Environment,
  following: Following,
) {
  let described = 0;
  const interceptor: WorkflowClientInterceptor = {
    describe: async (input, next) => {
      described += 1;
      if (described === 1) await between();
      return next(input);
    },
  };
  const client = new Client({ connection, interceptors: { workflow: [interceptor] } });
  return { progress: await progressOf(new FollowUpClient(client), following), described };
}

describe('the progress during a patient read', () => {
  // Proves L5.
  it.concurrent('has its answers, and the server’s time of its next one', async () => {
    const { environment, following } = await waiting();
    // What the workflow itself answers.
    const own = await following.handle.query<FollowUpProgress>('progress');
    expect(own).toMatchObject({ polls: 2, observed: { active: 2 } });
    const progress = await progressOf(environment.followUps, following);
    const polls = following.gets() - 1;
    expect(progress).toMatchObject({ phase: 'watching', polls });
    expect(progress.observed).toEqual({ active: polls - 1, 'http 429': 1 });
    expect(progress.lastAnswer).toMatch(/^http 429/);
    expect(Date.parse(progress.nextPollAt ?? '')).toBe(dueAt((await pendingRead(following)) ?? {}));
  });

  // Proves L5.
  it.concurrent('in the process of its worker has the answers of its heartbeats', async () => {
    const environment = await openInProcess();
    const { followUps } = environment;
    const following = await environment.follow(ENDLESS, TIMES);
    // The first heartbeat comes with the first answer, the second one 24 s later.
    const progress = await eventually('three polls', () => progressOf(followUps, following), {
      until: ({ polls }) => polls > 2,
    });
    expect(progress).toMatchObject({ phase: 'watching', polls: 3, observed: { active: 3 } });
    expect((await pendingRead(following))?.attempt).toBe(1);
  });

  it.concurrent('has no next read while an operator has paused the activity', async () => {
    const { environment, following } = await waiting();
    await new Operator(environment.client).pause(following.handle.workflowId, 'pollJob');
    const progress = await progressOf(environment.followUps, following);
    expect(progress).toMatchObject({ nextPollAt: null, observed: { 'http 429': 1 } });
  });

  it.concurrent('has a read that was counted between its two questions', async () => {
    const { environment, following } = await waiting();
    const { polls } = await progressOf(environment.followUps, following);
    const pollNow = () => following.update('pollNow');
    const { progress, described } = await progressAround(pollNow, environment, following);
    expect([described, progress.polls]).toEqual([2, polls + 1]);
  });
});

describe('the progress when a patient read ends', () => {
  // Proves L5.
  it.concurrent('between the two questions is the workflow’s own, with every answer once', async () => {
    const environment = await open();
    const following = await environment.follow(ENDLESS, TIMES);
    await untilAttempt(following, 3);
    const end = () => {
      following.changeJob({ status: 'failed' });
      return following.progressWhen(({ phase }) => phase === 'done');
    };
    const { progress, described } = await progressAround(end, environment, following);
    const { followUp } = await following.result();
    expect(described).toBe(1);
    expect(progress).toMatchObject({ phase: 'done', polls: followUp.polls, observed: followUp.observed });
  });

  // Proves L5.
  it.concurrent('again and again never falls, and never counts an answer that was not made', async () => {
    const environment = await openWithShortPolls();
    const { followUps } = environment;
    const following = await environment.follow(ENDLESS, TIMES);
    await untilAttempt(following, 1);
    const seen: number[] = [];
    const wrong: unknown[] = [];
    // A patience of half a second is over after five of them at most.
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
    const patient = (await activities(following.handle)).filter((type) => type === 'pollJob');
    expect(patient.length).toBeGreaterThanOrEqual(2);
  });
});

// Proves A4.
it.concurrent(
  'an update during a patient read has its answers and the new read, in a cool-down too',
  async () => {
    const { environment, following } = await waiting();
    const handle = environment.followUps.getHandle(following.handle.workflowId);
    const { polls, observed, nextPollAt } = await progressOf(environment.followUps, following);
    // The 429 of the patient read holds for the project, and not for what a person asks for.
    const polled = { polls: polls + 1, observed: { ...observed, active: (observed.active ?? 0) + 1 } };
    expect(await handle.pollNow()).toMatchObject({ ...polled, lastAnswer: 'active', nextPollAt });
    expect(await handle.extendDeadline('2h')).toMatchObject({ ...polled, nextPollAt });
  },
);
