import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type DevServer, startDevServer } from '../../tools/lib/dev-server';
import { eventually } from '../../tools/lib/eventually';
import { listFailedTasks } from '../harness/failed-tasks';
import { ENDLESS_TURN, FAST_OPTIONS } from '../harness/follow-up-under-test';
import { ProcessEnvironment } from '../harness/process-environment';
import { mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { TestBatch } from '../harness/test-batch';
import { VARIABLES } from '../harness/temporal';
import { recordedReleases, RELEASES } from '../releases/releases';
import { unpackedPath } from './end-to-end-environment';

const folder = temporaryFolder();
/** The worker's program of each release. */
const released: Record<string, string> = {};
let server: DevServer;

beforeAll(async () => {
  server = await startDevServer({ cli: process.env[VARIABLES.cli] ?? '', searchAttributes: true });
});
beforeAll(async () => {
  for (const release of recordedReleases()) released[release] = await install(release);
});
afterAll(() => server.stop());

/** Installs a recorded release with the dependencies of its own lock file. @returns the worker's program */
async function install(release: string): Promise<string> {
  const cwd = path.join(folder, release);
  await mkdir(cwd);
  await mustRun('tar', ['-xzf', path.join(RELEASES, release, 'worker.tgz'), '--strip-components=1'], { cwd });
  const quiet = ['--prefer-offline', '--no-audit', '--no-fund'];
  await mustRun('npm', ['ci', '--omit=dev', '--ignore-scripts', ...quiet], { cwd });
  return path.join(cwd, 'dist/worker.js');
}

/** After the first readable response, the polls are retries of `pollJob`. */
const WATCH = {
  ...FAST_OPTIONS,
  whenActive: 'wait',
  polling: { ...FAST_OPTIONS.polling, timerPolls: 1 },
} as const;
/** The turn in progress ends only when the test ends it, and the turn of the message ends without the test. */
const BUSY = { status: 'active', turns: [{ durationMs: null }, { reads: 2 }] } as const;
const LOST = { name: 'reset', operation: 'message', times: 1 } as const;
const ITEMS = 6;
const OPEN_ITEMS = 3;

/** Starts follow-ups in each long phase, and a batch with open items and items that wait for a place. */
async function startWork(environment: ProcessEnvironment) {
  const watching = await environment.follow(ENDLESS_TURN, WATCH);
  // Otherwise, the second follow-up could acquire the job lock first.
  await watching.waitForRequest({ operation: 'message' });
  const waitingForLock = await environment.send({ ...watching.key, ...WATCH });
  const waitingForJob = await environment.follow(BUSY, WATCH);
  const asking = await environment.follow({}, { ...WATCH, onUnknownDelivery: 'ask' }, LOST);
  const batch = new TestBatch(environment);
  batch.addItems(OPEN_ITEMS, ENDLESS_TURN).addItems(ITEMS - OPEN_ITEMS);
  await batch.startUntilSent(OPEN_ITEMS, { concurrency: OPEN_ITEMS });
  await watching.waitForProgress(({ phase }) => phase === 'watching');
  // The baseline read, the first poll, and at least two retries of `pollJob`.
  await watching.waitForRequest({ operation: 'get' }, { atLeast: 4 });
  await waitingForLock.waitForProgress(({ phase }) => phase === 'waiting-for-job');
  await waitingForJob.waitForProgress(({ phase }) => phase === 'waiting-for-job');
  await asking.waitForProgress(({ phase }) => phase === 'needs-decision');
  return { batch, watching, waitingForLock, waitingForJob, asking };
}

/** Ends all turns, decides the unknown delivery, and checks that the agent service received each message once. */
async function endWork(environment: ProcessEnvironment, work: Awaited<ReturnType<typeof startWork>>) {
  const { batch, watching, waitingForLock, waitingForJob, asking } = work;
  await asking.update('resolveDelivery', 'not-delivered', asking.firstRunId);
  watching.changeJob({ status: 'completed' });
  waitingForJob.changeJob({ status: 'completed' });
  expect((await watching.result()).receipt.delivery.verdict).toBe('accepted');
  await waitingForLock.waitForRequest({ operation: 'message' }, { atLeast: 2 });
  watching.changeJob({ status: 'completed' });
  for (const following of [waitingForLock, waitingForJob, asking])
    expect((await following.result()).receipt.delivery.verdict).toBe('accepted');
  expect(watching.processedFlags()).toEqual([true, true]);
  expect(waitingForJob.processedFlags()).toEqual([true]);
  // The connection of the first POST was reset before the agent service processed the message.
  expect(asking.processedFlags()).toEqual([false, true]);
  expect(await batch.finish()).toMatchObject({ state: 'done', summary: { ended: ITEMS } });
  expect(batch.messageCounts()).toEqual(Array.from({ length: ITEMS }, () => 1));
  expect(await listFailedTasks(environment.client, `TaskQueue = "${environment.taskQueue}"`)).toEqual([]);
}

/** The programs that run one after another: the worker of a release, the current worker, and the first one again. */
const replacements = recordedReleases().flatMap((release) => [
  [
    `from the worker of release ${release} to the current worker and back`,
    release,
    [true, false, true],
  ] as const,
  [
    `from the current worker to the worker of release ${release} and back`,
    release,
    [false, true, false],
  ] as const,
]);

// Proves D1.
it.each(replacements)(
  'running follow-ups and a batch move %s; each message is sent once, and no workflow task fails',
  async (_, release, areReleased) => {
    const programs = areReleased.map((isReleased) =>
      isReleased ? released[release] : unpackedPath('worker', 'dist/worker.js'),
    );
    await ProcessEnvironment.with(
      { address: server.address, sandbox: { messagesPerHour: null } },
      async (environment) => {
        let worker = await environment.startWorker({}, undefined, programs[0]);
        const work = await startWork(environment);
        for (const program of programs.slice(1)) {
          worker.signal('SIGTERM');
          expect(await worker.exited).toMatchObject({ code: 0 });
          worker = await environment.startWorker({}, undefined, program);
          // Each update or query makes the new worker replay the history.
          for (const following of [work.watching, work.waitingForJob, work.asking])
            await following.update('pollNow');
          await work.waitingForLock.waitForProgress(({ phase }) => phase === 'waiting-for-job');
          await eventually(
            'the batch reports its open items',
            async () => (await work.batch.handle.progress()).summary?.open === OPEN_ITEMS,
          );
        }
        await endWork(environment, work);
      },
    );
  },
);
