import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { bundleWorkflowCode, DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { eventually } from '../../../tools/lib/eventually';
import { FOLLOW_UP_WORKFLOW } from '../../../src/contract/names';
import { listFailedTasks } from '../../harness/failed-tasks';
import { ENDLESS_TURN, type FollowUpUnderTest } from '../../harness/follow-up-under-test';
import { ProcessEnvironment } from '../../harness/process-environment';
import { eventsOf } from '../../harness/reset';
import { temporal } from '../../harness/temporal';
import { ROOT } from '../../harness/worker-process';
import { RECORDED, recordedHistory, workflowTypeOf } from '../replay/recorded';

// Failed replays are expected.
Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: 'ERROR', forward: {} } },
});

const CHANGES = ['unpatched', 'patched'] as const;
type Change = (typeof CHANGES)[number];

/** The folder with a compiled worker for each change. Node finds the dependencies because the folder is in the project. */
let folder: string;
const bundlePath = (change: Change) => path.join(folder, change, 'dist/workflow-bundle.js');

beforeAll(async () => {
  await mkdir(path.join(ROOT, '.cache'), { recursive: true });
  folder = await mkdtemp(path.join(ROOT, '.cache/changed-worker-'));
  for (const change of CHANGES) {
    await cp(path.join(ROOT, 'dist'), path.join(folder, change, 'dist'), { recursive: true });
    await cp(path.join(ROOT, 'package.json'), path.join(folder, change, 'package.json'));
    const workflowsPath = path.join(__dirname, `${change}.ts`);
    const { code } = await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
    await writeFile(bundlePath(change), code);
  }
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const followUps = RECORDED.map(([release, name]) => recordedHistory(release, name)).filter(
  ({ events }) => workflowTypeOf(events) === FOLLOW_UP_WORKFLOW,
);

/** Returns the error of each replayed follow-up. */
async function replayErrors(change: Change): Promise<(Error | undefined)[]> {
  const histories = followUps.map(({ workflowId, events }) => ({ workflowId, history: { events } }));
  const results = Worker.runReplayHistories({ workflowBundle: { codePath: bundlePath(change) } }, histories);
  const errors = [];
  for await (const { error } of results) errors.push(error);
  return errors;
}

it('a changed workflow that starts a timer before its first step replays no recorded follow-up without patched(), and all of them with patched()', async () => {
  const without = await replayErrors('unpatched');
  expect(without).toHaveLength(followUps.length);
  expect(without.filter((error) => !(error instanceof DeterminismViolationError))).toEqual([]);
  expect((await replayErrors('patched')).filter((error) => error !== undefined)).toEqual([]);
});

const command = (...args: string[]) => {
  const { cli, address, env } = temporal();
  return promisify(execFile)(cli, [...args, '--address', address], { env });
};

/** Starts a worker of each version of a Worker Deployment, so that a change of the current version takes effect at once. */
async function startDeployment(environment: ProcessEnvironment) {
  const name = `change-${randomUUID().slice(0, 8)}`;
  const start = (buildId: string, program?: string) => {
    const env = { TEMPORAL_DEPLOYMENT_NAME: name, TEMPORAL_WORKER_BUILD_ID: buildId };
    return environment.startWorker(env, undefined, program);
  };
  const changed = CHANGES.map((change) => start(change, path.join(folder, change, 'dist/worker.js')));
  await Promise.all([start('old'), ...changed]);
  const setCurrent = (buildId: string) =>
    // The Temporal server rejects the command until workers of the version poll every task queue.
    eventually(
      'the version is current',
      () =>
        command(
          ...['worker', 'deployment', 'set-current-version', '--yes'],
          ...['--deployment-name', name, '--build-id', buildId],
        ),
      { intervalMs: 500 },
    );
  const pin = ({ handle }: FollowUpUnderTest, buildId: string) =>
    command(
      ...['workflow', 'update-options', '--workflow-id', handle.workflowId],
      ...['--versioning-override-behavior', 'pinned'],
      ...['--versioning-override-deployment-name', name, '--versioning-override-build-id', buildId],
    );
  return { setCurrent, pin };
}

/** Returns the build ID of each completed workflow task of a follow-up, without repetitions, in the order of the tasks. */
async function buildIdsOf({ handle }: FollowUpUnderTest): Promise<string[]> {
  const events = await eventsOf(handle);
  const tasks = events.flatMap(({ workflowTaskCompletedEventAttributes: task }) => (task ? [task] : []));
  return [...new Set(tasks.map(({ deploymentVersion }) => deploymentVersion?.buildId ?? ''))];
}

const watch = async (following: FollowUpUnderTest) => {
  await following.waitForProgress(({ phase }) => phase === 'watching');
  return following;
};

// Proves D1.
it('with Worker Versioning, a follow-up that is pinned to the old version ends there, another one waits while the new version can’t replay it and ends with the patched version, and each message is sent once', () =>
  ProcessEnvironment.with({}, async (environment) => {
    const { setCurrent, pin } = await startDeployment(environment);
    await setCurrent('old');
    const [pinned, moving] = [await environment.follow(ENDLESS_TURN), await environment.follow(ENDLESS_TURN)];
    await Promise.all([watch(pinned), watch(moving)]);
    await pin(pinned, 'old');

    await setCurrent('unpatched');
    for (const following of [pinned, moving]) following.changeJob({ status: 'completed' });
    expect((await pinned.result()).receipt.delivery.verdict).toBe('accepted');
    const failed = await eventually('the new version has failed to replay the other follow-up', async () => {
      const tasks = await listFailedTasks(environment.client, `TaskQueue = "${environment.taskQueue}"`);
      return tasks.length > 0 && tasks;
    });
    expect(failed[0]).toContain(moving.handle.workflowId);
    expect(failed[0]).toMatch(/nondeterminism/i);
    const fresh = await watch(await environment.follow(ENDLESS_TURN));
    // The patched version can't replay this follow-up, because its history has the timer and no mark of the patch.
    await pin(fresh, 'unpatched');

    await setCurrent('patched');
    expect((await moving.result()).receipt.delivery.verdict).toBe('accepted');
    fresh.changeJob({ status: 'completed' });
    expect((await fresh.result()).receipt.delivery.verdict).toBe('accepted');
    const all = [pinned, moving, fresh];
    expect(all.map((following) => following.processedFlags())).toEqual([[true], [true], [true]]);
    expect(await buildIdsOf(pinned)).toEqual(['old']);
    expect(await buildIdsOf(moving)).toEqual(['old', 'patched']);
    expect(await buildIdsOf(fresh)).toEqual(['unpatched']);
  }));
