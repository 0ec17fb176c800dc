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

/** The number of follow-ups that watch their job. The other follow-ups wait until their job is idle. */
const WATCHING = 6;
const FOLLOW_UPS = 8;
/** The first items run until the test ends their turns, so that the other items are not started yet. */
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

/** The job has a turn in progress that ends only when the test ends it. The turn of the message ends without the test. */
const BUSY = { status: 'active', turns: [{ durationMs: null }, {}] } as const;

/**
 * Runs a `temporal worker deployment` command until it succeeds. The Temporal server rejects the command until workers of the
 * version poll every task queue of the current version.
 */
async function deploy(name: string, ...command: string[]): Promise<void> {
  const { cli, address, env } = temporal();
  const args = ['worker', 'deployment', ...command, '--deployment-name', name, '--yes', '--address', address];
  await eventually(
    `the command ${command.join(' ')} succeeds`,
    () => promisify(execFile)(cli, args, { env }),
    { intervalMs: 500 },
  );
}

/** Three worker processes start and two stop, one after another. This takes 70 s on an idle machine and 110 s on a busy one. */
const TIMEOUT_MS = 300_000;

// Proves D1.
it(
  'running follow-ups and a batch move to a new worker version and back; each message is sent once, and no workflow task fails',
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
        const isOfVersion = `AND TemporalWorkerDeploymentVersion = "${name}:${buildId}"`;
        const query = `TaskQueue = "${taskQueue}" AND WorkflowType = "followUp" AND ExecutionStatus = "Running"`;
        return (
          await client.workflow.count(`${query} AND AgentProject != "${batch.projectId}" ${isOfVersion}`)
        ).count;
      };
      const waitUntilMoved = (from: string, to: string) =>
        eventually(
          `all running follow-ups have moved from ${from} to ${to}`,
          async () => [await running(from), await running(to)],
          { intervalMs: 500, until: ([onFrom, onTo]) => onFrom === 0 && onTo === FOLLOW_UPS },
        );
      await batch.waitUntilSent(OPEN_ITEMS);

      // The newer version has another HTTP timeout, which must not change a running follow-up. The rollout starts with 50%.
      const newer = await start('newer', { AGENT_API_TIMEOUT: '3s' });
      await deploy(name, 'set-ramping-version', '--build-id', 'newer', '--percentage', '50');
      // At its next workflow task, a follow-up moves to the newer version or stays, depending on its workflow ID.
      await Promise.all(watching.map(({ handle }) => handle.executeUpdate('pollNow')));
      await setCurrent('newer');
      // A follow-up stays on its version until its next workflow task.
      older.signal('SIGTERM');
      expect(await older.exited).toMatchObject({ code: 0 });
      await waitUntilMoved('older', 'newer');

      await start('older');
      await setCurrent('older');
      newer.signal('SIGTERM');
      expect(await newer.exited).toMatchObject({ code: 0 });
      await waitUntilMoved('newer', 'older');

      expect((await batch.handle.progress()).state).toBe('running');
      expect(batch.posts()).toHaveLength(OPEN_ITEMS);
      // The jobs become idle. The follow-ups that waited then send their message, whose turn ends without the test.
      for (const { key } of followings) sandbox.changeJob(key, { status: 'completed' });
      for (const summary of await Promise.all(followings.map((following) => following.outcomeSummary())))
        expect(summary).toMatchObject({ delivery: ACCEPTED_BY_RESPONSE, posts: [true] });
      expect(await batch.finish()).toMatchObject({ state: 'done', summary: { ended: ITEMS } });
      expect(batch.messageCounts()).toEqual(Array.from({ length: ITEMS }, () => 1));
      expect(await listFailedTasks(client, `TaskQueue = "${taskQueue}"`)).toEqual([]);
    }),
  TIMEOUT_MS,
);
