import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { BatchOfTest } from '../harness/batch-of-test';
import { eventually } from '../harness/eventually';
import { failedTasks } from '../harness/failed-tasks';
import { BY_RESPONSE, ENDLESS, type Following } from '../harness/following';
import { ProcessEnvironment } from '../harness/process-environment';
import { eventsOf } from '../harness/reset';
import { temporal } from '../harness/temporal';

const WATCHING = 12;
const FOLLOW_UPS = 16;
/** The first items stay open until the test ends their turns, so that others are still to be sent. */
const OPEN_ITEMS = 5;
const ITEMS = 10;

/** The first polls by timers; then some wait in the process, which has places for few, and the others on the server. */
const TIMES = {
  deadline: '10m',
  polling: { initial: '1s', growth: 0.2, maximum: '4s', jitter: 0.2 },
  reconcile: '4s',
  settle: '2s',
  confirm: '3s',
} as const;

/** In a turn that ends only when the test says so; the message's own turn ends by itself. */
const BUSY = { status: 'active', turns: [{ durationMs: null }, {}] } as const;

/** Switches between the versions, as an operator does. Refused until workers of the version poll every queue of the current one. */
function deploymentOf(name: string) {
  const { cli, address, env } = temporal();
  const set = (command: string, ...words: string[]) => {
    const args = ['worker', 'deployment', command, '--deployment-name', name, '--yes', ...words];
    const run = () => promisify(execFile)(cli, [...args, '--address', address], { env });
    return eventually([command, ...words].join(' '), run, { intervalMs: 500 });
  };
  return {
    name,
    env: (buildId: string) => ({ TEMPORAL_DEPLOYMENT_NAME: name, TEMPORAL_WORKER_BUILD_ID: buildId }),
    setCurrent: (buildId: string) => set('set-current-version', '--build-id', buildId),
    /** Half of all follow-ups, running ones too, as a progressive rollout begins. */
    setHalf: (buildId: string) => set('set-ramping-version', '--build-id', buildId, '--percentage', '50'),
  };
}

describe('follow-ups and a batch under way', () => {
  // Proves D1.
  it('go from one version of the worker to the next and back: each message once, no workflow task fails', () =>
    ProcessEnvironment.with(
      { sandbox: { messagesPerHour: null }, env: { AGENT_API_IN_PROCESS_POLLS: '20' } },
      async (environment) => {
        const { client, taskQueue } = environment;
        const deployment = deploymentOf(`follow-up-${randomUUID().slice(0, 8)}`);
        const older = await environment.startWorker(deployment.env('older'));
        await deployment.setCurrent('older');
        const followings = await startFollowUps(environment);
        const batch = new BatchOfTest(environment);
        batch.addMany(OPEN_ITEMS, ENDLESS, TIMES).addMany(ITEMS - OPEN_ITEMS, {}, TIMES);
        await batch.start({ concurrency: OPEN_ITEMS });
        const running = (buildId: string) =>
          client.workflow.count(
            `TaskQueue = "${taskQueue}" AND WorkflowType = "followUp" AND ExecutionStatus = "Running"` +
              ` AND AgentProject != "${batch.projectId}"` +
              ` AND TemporalWorkerDeploymentVersion = "${deployment.name}:${buildId}"`,
          );
        const leave = (from: string, to: string) =>
          eventually(
            `all running follow-ups have gone from ${from} to ${to}`,
            async () => ({ left: (await running(from)).count, come: (await running(to)).count }),
            { intervalMs: 500, until: ({ left, come }) => left === 0 && come === FOLLOW_UPS },
          );
        await batch.sent(OPEN_ITEMS);

        // A newer version with another setting, which no running follow-up may notice.
        const newer = await environment.startWorker({ ...deployment.env('newer'), AGENT_API_TIMEOUT: '3s' });
        await deployment.setHalf('newer');
        // With a task, a follow-up goes to the version that its id is drawn for: some go ahead, some stay.
        for (const { handle } of followings.slice(0, WATCHING)) await handle.executeUpdate('pollNow');
        await deployment.setCurrent('newer');
        // Its polls in process are handed over; until then, or a task, a follow-up stays with the version that it has.
        older.signal('SIGTERM');
        expect(await older.exited).toMatchObject({ code: 0 });
        await leave('older', 'newer');

        await environment.startWorker(deployment.env('older'));
        await deployment.setCurrent('older');
        newer.signal('SIGTERM');
        expect(await newer.exited).toMatchObject({ code: 0 });
        await leave('newer', 'older');

        expect((await batch.handle.progress()).state).toBe('running');
        expect(batch.posts()).toHaveLength(OPEN_ITEMS);
        endTurns(environment, followings);
        for (const following of followings)
          expect(await following.ending()).toMatchObject({ delivery: BY_RESPONSE, posts: [true] });
        expect(await batch.finish()).toMatchObject({ state: 'done', summary: { settled: ITEMS } });
        expect(batch.messages()).toEqual(Array.from({ length: ITEMS }, () => 1));

        const went = await versionsOf(followings);
        expect(went).toEqual(followings.map(() => ['older', 'newer', 'older']));
        expect((await failedTasks(client, `TaskQueue = "${taskQueue}"`)).failed).toEqual([]);
      },
    ));
});

/** Most watch their job, the others wait until it is at rest. */
async function startFollowUps(environment: ProcessEnvironment): Promise<Following[]> {
  const followings: Following[] = [];
  while (followings.length < WATCHING) followings.push(await environment.follow(ENDLESS, TIMES));
  for (const following of followings) await following.reached({ operation: 'get' }, { atLeast: 5 });
  while (followings.length < FOLLOW_UPS)
    followings.push(await environment.follow(BUSY, { ...TIMES, whenActive: 'wait' }));
  return followings;
}

/** Lets the jobs come to rest; those that were waited for get their message then, and a turn that ends by itself. */
function endTurns({ sandbox }: ProcessEnvironment, followings: readonly Following[]): void {
  for (const { key } of followings) {
    if (sandbox.job(key).job.status === 'active') sandbox.changeJob(key, { status: 'completed' });
  }
}

/** The versions that have worked on each, in their order. */
async function versionsOf(followings: readonly Following[]): Promise<string[][]> {
  return Promise.all(
    followings.map(async ({ handle }) => {
      const builds = (await eventsOf(handle)).flatMap(({ workflowTaskCompletedEventAttributes: task }) =>
        typeof task?.deploymentVersion?.buildId === 'string' ? [task.deploymentVersion.buildId] : [],
      );
      return builds.filter((build, index) => build !== builds[index - 1]);
    }),
  );
}
