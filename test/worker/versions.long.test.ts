import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { TestBatch } from '../harness/test-batch';
import { eventually } from '../../tools/lib/eventually';
import { listFailedTasks } from '../harness/failed-tasks';
import { ACCEPTED_BY_RESPONSE, ENDLESS_TURN } from '../harness/follow-up-under-test';
import { ProcessEnvironment } from '../harness/process-environment';
import { temporal } from '../harness/temporal';

/** So many watch their job, and some wait until it is at rest. */
const WATCHING = 6;
const FOLLOW_UPS = 8;
/** The first items stay open until the test ends their turns, so that others are still to be sent. */
const OPEN_ITEMS = 5;
const ITEMS = 10;

/** The first polls use timers; after these, `pollJob` polls. */
const TIMES = {
  deadline: '10m',
  polling: { initial: '1s', growth: 0.2, maximum: '4s', jitter: 0.2 },
  reconcileTimeout: '4s',
  prLinkTimeout: '2s',
  maxStaleness: '3s',
} as const;
const UNLIMITED = { sandbox: { messagesPerHour: null } };

/** In a turn that ends only when the test says so; the message's own turn ends by itself. */
const BUSY = { status: 'active', turns: [{ durationMs: null }, {}] } as const;

/** An operator's command. Refused until workers of the version poll every queue of the current one. */
async function deploy(name: string, ...words: string[]): Promise<void> {
  const { cli, address, env } = temporal();
  const args = ['worker', 'deployment', ...words, '--deployment-name', name, '--yes', '--address', address];
  await eventually(words.join(' '), () => promisify(execFile)(cli, args, { env }), { intervalMs: 500 });
}

/** Three worker processes start and two stop one after another: 70 s on a quiet machine, and 110 s on a busy one. */
const TIMEOUT_MS = 300_000;

// Proves D1.
it(
  'follow-ups and a batch under way go from one version of the worker to the next and back: each message once, no workflow task fails',
  () =>
    ProcessEnvironment.with(UNLIMITED, async (environment) => {
      const { client, sandbox, taskQueue } = environment;
      const name = `follow-up-${randomUUID().slice(0, 8)}`;
      const start = (buildId: string, env = {}) =>
        environment.startWorker({
          TEMPORAL_DEPLOYMENT_NAME: name,
          TEMPORAL_WORKER_BUILD_ID: buildId,
          ...env,
        });
      const setCurrent = (buildId: string) => deploy(name, 'set-current-version', '--build-id', buildId);
      const older = await start('older');
      await setCurrent('older');
      const follow = (count: number, ...[job, request]: Parameters<typeof environment.follow>) =>
        Promise.all(Array.from({ length: count }, () => environment.follow(job, request)));
      const watching = await follow(WATCHING, ENDLESS_TURN, TIMES);
      await Promise.all(
        watching.map((following) => following.waitForRequest({ operation: 'get' }, { atLeast: 5 })),
      );
      const waiting = await follow(FOLLOW_UPS - WATCHING, BUSY, { ...TIMES, whenActive: 'wait' });
      const followings = [...watching, ...waiting];
      const batch = new TestBatch(environment);
      batch.addItems(OPEN_ITEMS, ENDLESS_TURN, TIMES).addItems(ITEMS - OPEN_ITEMS, {}, TIMES);
      await batch.start({ concurrency: OPEN_ITEMS });
      const running = async (buildId: string) => {
        const ofVersion = `AND TemporalWorkerDeploymentVersion = "${name}:${buildId}"`;
        const query = `TaskQueue = "${taskQueue}" AND WorkflowType = "followUp" AND ExecutionStatus = "Running"`;
        return (await client.workflow.count(`${query} AND AgentProject != "${batch.projectId}" ${ofVersion}`))
          .count;
      };
      const haveGone = (from: string, to: string) =>
        eventually(
          `all running follow-ups have gone from ${from} to ${to}`,
          async () => [await running(from), await running(to)],
          { intervalMs: 500, until: ([left, come]) => left === 0 && come === FOLLOW_UPS },
        );
      await batch.waitUntilSent(OPEN_ITEMS);

      // A newer version with another setting, which no running follow-up may notice; as a progressive rollout begins.
      const newer = await start('newer', { AGENT_API_TIMEOUT: '3s' });
      await deploy(name, 'set-ramping-version', '--build-id', 'newer', '--percentage', '50');
      // With a task, a follow-up goes to the version that its id is drawn for: some go ahead, some stay.
      await Promise.all(watching.map(({ handle }) => handle.executeUpdate('pollNow')));
      await setCurrent('newer');
      // Until its next workflow task, a follow-up stays with its version.
      older.signal('SIGTERM');
      expect(await older.exited).toMatchObject({ code: 0 });
      await haveGone('older', 'newer');

      await start('older');
      await setCurrent('older');
      newer.signal('SIGTERM');
      expect(await newer.exited).toMatchObject({ code: 0 });
      await haveGone('newer', 'older');

      expect((await batch.handle.progress()).state).toBe('running');
      expect(batch.posts()).toHaveLength(OPEN_ITEMS);
      // The jobs come to rest; those that were waited for get their message then, and a turn that ends by itself.
      for (const { key } of followings) sandbox.changeJob(key, { status: 'completed' });
      for (const ending of await Promise.all(followings.map((following) => following.outcomeSummary())))
        expect(ending).toMatchObject({ delivery: ACCEPTED_BY_RESPONSE, posts: [true] });
      expect(await batch.finish()).toMatchObject({ state: 'done', summary: { ended: ITEMS } });
      expect(batch.messageCounts()).toEqual(Array.from({ length: ITEMS }, () => 1));
      expect(await listFailedTasks(client, `TaskQueue = "${taskQueue}"`)).toEqual([]);
    }),
  TIMEOUT_MS,
);
