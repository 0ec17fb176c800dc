import { describe, expect, it } from '@jest/globals';
import { Client, type WorkflowClientInterceptor } from '@temporalio/client';
import { FollowUpClient, type FollowUpProgress } from '../../src/client';
import { eventually } from '../harness/eventually';
import { ENDLESS, type Following } from '../harness/following';
import { Operator } from '../harness/operator';
import { sharedEnvironment } from '../harness/shared-environment';
import { dueAt, pendingRead, SOON, untilAttempt, untilItWaits } from '../harness/pending-poll';

const { open } = sharedEnvironment({ inProcessPolls: 0 });
const { open: openInProcess } = sharedEnvironment();

const TIMES = { polling: { ...SOON, initial: '100ms', maximum: '100ms' }, deadline: '10m' } as const;

async function progressOf(followUps: FollowUpClient, { handle }: Following): Promise<FollowUpProgress> {
  const report = await followUps.getHandle(handle.workflowId).progress();
  if (report.from !== 'worker') throw new Error('no worker answered');
  return report.progress;
}

/** The progress with something that happens between its two questions, and how often the second one was asked. */
async function progressAround(between: () => Promise<unknown>, following: Following) {
  const { connection } = (await open()).client;
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
  it.concurrent(
    'has its answers, when the next one is due if none has paused it, and what is read meanwhile',
    async () => {
      const environment = await open();
      const following = await environment.follow(ENDLESS, TIMES);
      await untilItWaits(environment.sandbox, following);
      const now = () => progressOf(environment.followUps, following);
      const polls = following.gets() - 1;
      const observed = { active: polls - 1, 'http 429': 1 };
      const { nextPollAt, ...progress } = await now();
      expect(progress).toMatchObject({ phase: 'watching', polls, observed });
      expect(progress.lastAnswer).toMatch(/^http 429/);
      expect(Date.parse(nextPollAt ?? '')).toBe(dueAt((await pendingRead(following)) ?? {}));
      // The 429 of the patient read holds for the project, and not for what a person asks for.
      const handle = environment.followUps.getHandle(following.handle.workflowId);
      const polled = { polls: polls + 1, observed: { ...observed, active: polls }, nextPollAt };
      expect(await handle.pollNow()).toMatchObject({ ...polled, lastAnswer: 'active' });
      expect(await handle.extendDeadline('2h')).toMatchObject(polled);
      const around = await progressAround(() => following.update('pollNow'), following);
      expect([around.described, around.progress.polls]).toEqual([2, polls + 2]);
      await new Operator(environment.client).pause(handle.workflowId, 'pollJob');
      expect(await now()).toMatchObject({ polls: polls + 2, nextPollAt: null });
    },
  );

  // Proves L5.
  it.concurrent('in the process of its worker has the answers of its heartbeats', async () => {
    const environment = await openInProcess();
    const following = await environment.follow(ENDLESS, TIMES);
    // The first heartbeat comes with the first answer, the second one 24 s later.
    const progress = await eventually('three polls', () => progressOf(environment.followUps, following), {
      until: ({ polls }) => polls > 2,
    });
    expect(progress).toMatchObject({ phase: 'watching', polls: 3, observed: { active: 3 } });
    expect((await pendingRead(following))?.attempt).toBe(1);
  });

  // Proves L5.
  it.concurrent('that ends between the two questions has every answer once', async () => {
    const environment = await open();
    const following = await environment.follow(ENDLESS, TIMES);
    await untilAttempt(following, 3);
    const end = () => {
      following.changeJob({ status: 'failed' });
      return following.progressWhen(({ phase }) => phase === 'done');
    };
    const { progress, described } = await progressAround(end, following);
    const { followUp } = await following.result();
    expect(described).toBe(1);
    expect(progress).toMatchObject({ phase: 'done', polls: followUp.polls, observed: followUp.observed });
  });
});
