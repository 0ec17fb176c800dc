/**
 * Records the histories of follow-ups of every kind, for the replay tests: `npm run record-histories`. With `--replace`, the script
 * replaces the histories of this version.
 *
 * Every history is kept permanently, in a folder named after the release that recorded it, because a changed workflow must still
 * replay all of them. The histories of a published release are never recorded again. The script therefore rejects a folder that
 * exists.
 */
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils';
import { version } from '../../../package.json';
import { startDevServer } from '../../../tools/lib/dev-server';
import { FollowUpClient } from '../../../src/entries/client';
import type { PollingRequest } from '../../../src/contract/request';
import { bundleCode } from '../../../src/worker/bundle';
import { findTemporalCli } from '../../../tools/lib/temporal-cli';
import { eventually } from '../../../tools/lib/eventually';
import { Environment } from '../../harness/environment';
import { type FollowUpUnderTest, FAST_OPTIONS } from '../../harness/follow-up-under-test';

const ROOT = path.resolve(__dirname, '../../..');

/** The turn ends when the script ends it. */
const endless = { turn: { durationMs: null } };

/**
 * The first poll uses a timer. The later polls use retries at intervals of six seconds or more, so that an update arrives between two
 * polls.
 */
const SLOW = { initial: '500ms', growth: 3, maximum: '10m', jitter: 0, timerPolls: 1 } as const;

const LINK = 'https://example.test/pull/10';

/** With the default `wait`, a follow-up uses the job lock. The requests of the test harness have `send` instead. */
const WAIT = { whenActive: 'wait' } as const;

/** The connection is reset before the agent service has processed the message. */
const LOST = { name: 'reset', operation: 'message', times: 1 } as const;

type Paths = Record<string, (environment: Environment) => Promise<FollowUpUnderTest>>;

/** Each function starts a follow-up that takes one path through the workflow, and performs every other action of this path. */
const paths: Paths = {
  accepted: (environment) => environment.follow({}, WAIT),
  'ten-polls-by-timers': (environment) => followForPolls(environment, 10, { timerPolls: 'all' }),
  'ten-polls': (environment) => followForPolls(environment, 10),
  'sixty-polls': (environment) => followForPolls(environment, 60),
  'completed-without-link': (environment) => environment.follow({ turn: { outcome: 'no-change' } }),
  'link-late': (environment) =>
    environment.follow(
      { turn: { outcome: 'new-pull-request', reads: 2 } },
      { prLinkTimeout: '30s' },
      {
        name: 'late-link',
        parameters: { reads: 1 },
      },
    ),
  stale: (environment) =>
    environment.follow(
      { pullRequest: true, turn: { reads: 3 } },
      { maxStaleness: '5s' },
      { name: 'stale', parameters: { reads: 1 } },
    ),
  'turn-never-active': (environment) =>
    environment.follow({ turn: { outcome: 'no-change' } }, {}, { name: 'invisible-turn' }),
  'active-job-waited-for': (environment) => environment.follow({ status: 'active' }, WAIT),
  'active-job-waited-for-by-retries': async (environment) => {
    const polling = { initial: '1s', growth: 0, jitter: 0, timerPolls: 0 } as const;
    const following = await environment.follow({ status: 'active', ...endless }, { ...WAIT, polling });
    await untilPolledByRetry(following);
    following.changeJob({ status: 'completed' });
    await following.waitForRequest({ operation: 'message' });
    following.changeJob({ status: 'failed' });
    return following;
  },
  'job-lock-waited-for': async (environment) => {
    const holder = await environment.follow(endless, WAIT);
    await holder.waitForProgress(({ phase }) => phase === 'watching');
    const following = await environment.send({ ...holder.key, ...WAIT });
    await following.waitForProgress(({ phase }) => phase === 'waiting-for-job');
    holder.changeJob({ status: 'completed', prLink: LINK });
    await holder.result();
    await following.waitForRequest({ operation: 'message' }, { atLeast: 2 });
    following.changeJob({ status: 'failed' });
    return following;
  },
  'rejected-active': (environment) => environment.follow({ status: 'active' }, { whenActive: 'reject' }),
  rejected: (environment) =>
    environment.follow({}, WAIT, { name: 'status', operation: 'message', parameters: { code: 403 } }),
  'sent-after-429': (environment) =>
    environment.follow({}, {}, { name: 'http-429', operation: 'message', times: 1 }),
  'sent-after-401': (environment) =>
    environment.follow(
      {},
      WAIT,
      { name: 'status', operation: 'get', times: 2, parameters: { code: 401 } },
      { name: 'status', operation: 'message', times: 1, parameters: { code: 401 } },
    ),
  'delivery-shown-by-read': (environment) => environment.follow({}, {}, { name: 'processed-then-close' }),
  'delivery-unknown': (environment) => environment.follow({}, {}, LOST),
  resent: (environment) => environment.follow({}, { onUnknownDelivery: 'resend' }, LOST),
  'assumed-delivered': (environment) =>
    environment.follow({}, { onUnknownDelivery: 'assume-delivered' }, LOST),
  'decided-not-delivered': async (environment) => {
    const following = await environment.follow({}, { onUnknownDelivery: 'ask' }, LOST);
    await following.waitForProgress(({ phase }) => phase === 'needs-decision');
    await following.update('resolveDelivery', 'not-delivered', following.firstRunId);
    return following;
  },
  'polls-failed': (environment) =>
    environment.follow({}, {}, { name: 'http-503', operation: 'get', times: 2, skip: 1 }),
  'updated-between-timer-polls': async (environment) => {
    const polling = { initial: '15s', maximum: '15s', timerPolls: 'all' } as const;
    const following = await environment.follow(endless, { polling });
    await following.waitForProgress(({ phase }) => phase === 'watching');
    await following.update('extendDeadline', '20m');
    following.changeJob({ status: 'failed' });
    await following.update('pollNow');
    return following;
  },
  'poll-interrupted-by-poll-now': async (environment) => {
    const following = await environment.follow(endless, { ...WAIT, polling: SLOW });
    await untilPolledByRetry(following);
    await following.update('pollNow');
    following.changeJob({ status: 'failed' });
    await following.update('pollNow');
    return following;
  },
  'poll-interrupted-by-cancellation': async (environment) => {
    const following = await environment.follow(endless, { ...WAIT, polling: SLOW });
    await untilPolledByRetry(following);
    await following.handle.cancel();
    return following;
  },
  'poll-interrupted-by-decision': async (environment) => {
    const polling = { ...SLOW, growth: 1, timerPolls: 0 } as const;
    const following = await environment.follow(endless, { onUnknownDelivery: 'ask', polling }, LOST);
    await following.waitForProgress(({ phase }) => phase === 'needs-decision');
    await untilPolledByRetry(following);
    await following.update('resolveDelivery', 'delivered');
    following.changeJob({ status: 'failed' });
    return following;
  },
  'job-not-found': (environment) => environment.send({ projectId: 'nowhere', jobId: 'nobody', ...WAIT }),
  'deadline-exceeded': (environment) => environment.follow(endless, { deadline: '4s' }),
  cancelled: async (environment) => {
    const following = await environment.follow(endless, {
      polling: { ...FAST_OPTIONS.polling, timerPolls: 'all' },
    });
    await following.waitForProgress(({ polls }) => polls > 1);
    await following.handle.cancel();
    return following;
  },
};

/**
 * The Temporal server for these paths suggests continue-as-new after a few polls. With the default settings, the server suggests
 * it at 4,096 events.
 */
const continuing: Paths = {
  'continued-as-new': async (environment) => {
    const polling = { ...FAST_OPTIONS.polling, timerPolls: 'all' } as const;
    const following = await environment.follow(endless, { ...WAIT, polling });
    const { runId } = await following.handle.describe();
    await following.waitForProgress(({ polls }) => polls >= 10);
    if ((await following.handle.describe()).runId === runId)
      throw new Error('the run did not continue as new');
    following.changeJob({ status: 'completed', prLink: LINK });
    return following;
  },
};

/** Starts a follow-up whose job ends at the poll with this number. */
async function followForPolls(
  environment: Environment,
  polls: number,
  options: PollingRequest = {},
): Promise<FollowUpUnderTest> {
  const polling = { initial: '200ms', growth: 0, jitter: 0, ...options } as const;
  const following = await environment.follow(endless, { ...WAIT, polling });
  // The first GET is the baseline read.
  await following.waitForRequest({ operation: 'get', ending: 'answered' }, { atLeast: polls });
  following.changeJob({ status: 'completed', prLink: LINK });
  return following;
}

/** Waits until `pollJob` has made at least two reads, so that Temporal retries it. */
async function untilPolledByRetry({ handle }: FollowUpUnderTest): Promise<void> {
  await eventually('a retry of pollJob is pending', async () => {
    const { raw } = await handle.describe();
    return raw.pendingActivities?.find(
      ({ activityType, attempt }) => activityType?.name === 'pollJob' && (attempt ?? 0) > 2,
    );
  });
}

async function main(): Promise<void> {
  const folder = path.join(ROOT, 'test/workflows/replay/histories', version);
  if (process.argv.includes('--replace')) await rm(folder, { recursive: true, force: true });
  if (await stat(folder).catch(() => undefined)) {
    throw new Error(
      `the histories of ${version} exist; for an unpublished version, --replace records them again`,
    );
  }
  const scratch = await mkdtemp(path.join(os.tmpdir(), 'record-histories-'));
  const bundlePath = path.join(scratch, 'workflow-bundle.js');
  await writeFile(bundlePath, await bundleCode());

  const cli = (await findTemporalCli({ env: process.env, report: console.error })).path;
  try {
    await mkdir(folder, { recursive: true });
    await record(paths, folder, bundlePath, cli);
    await record(continuing, folder, bundlePath, cli, { 'limit.historyCount.suggestContinueAsNew': 45 });
    await recordBatch(folder, bundlePath, cli);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function record(
  followed: Paths,
  folder: string,
  bundlePath: string,
  cli: string,
  dynamicConfig: Record<string, number> = {},
): Promise<void> {
  await withEnvironment(bundlePath, cli, dynamicConfig, async (environment) => {
    for (const [name, follow] of Object.entries(followed)) {
      const { handle, firstRunId } = await follow(environment);
      // Some paths end with a failure.
      await handle.result().catch(() => undefined);
      const { runId: lastRunId } = await handle.describe();
      for (const [index, runId] of [...new Set([firstRunId, lastRunId])].entries()) {
        const file = `${name}${index === 0 ? '' : `-run-${index + 1}`}.json`;
        await save(environment, handle.workflowId, runId, path.join(folder, file));
      }
    }
  });
}

/** Records a batch that exceeds `maxFailures`, and a further run of the same batch, which finds the items that have ended. */
async function recordBatch(folder: string, bundlePath: string, cli: string): Promise<void> {
  await withEnvironment(bundlePath, cli, {}, async (environment) => {
    const { batches } = new FollowUpClient(environment.client, { taskQueue: environment.taskQueue });
    const requests = ['completed', 'failed', 'failed', 'completed'].map((outcome) => {
      const turn = { outcome: outcome === 'failed' ? 'failed' : 'new-pull-request' } as const;
      const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'batch', turn });
      return { ...FAST_OPTIONS, projectId, jobId, prompt: 'Rebase on main.' };
    });
    for (const [name, options] of [
      ['batch-max-failures-exceeded', { concurrency: 1, maxFailures: { items: 1 } }],
      ['batch-resumed', { concurrency: 3 }],
    ] as const) {
      const batch = await batches.start(requests, { batchId: 'nightly', ...options });
      await batch.result();
      const { workflowId } = batch;
      const { runId } = await environment.client.workflow.getHandle(workflowId).describe();
      await save(environment, workflowId, runId, path.join(folder, `${name}.json`));
    }
  });
}

/** Without this setting, every timer and retry could fire up to a second late. */
const TIMERS_ON_TIME = { 'history.timerProcessorMaxTimeShift': '10ms' };

async function withEnvironment(
  bundlePath: string,
  cli: string,
  dynamicConfig: Readonly<Record<string, number>>,
  work: (environment: Environment) => Promise<void>,
): Promise<void> {
  const settings = { ...TIMERS_ON_TIME, ...dynamicConfig };
  const server = await startDevServer({ cli, searchAttributes: true, dynamicConfig: settings });
  try {
    const environment = await Environment.open({ address: server.address, bundlePath });
    await work(environment).finally(() => environment.close());
  } finally {
    await server.stop();
  }
}

async function save(
  environment: Environment,
  workflowId: string,
  runId: string,
  file: string,
): Promise<void> {
  const history = await environment.client.workflow.getHandle(workflowId, runId).fetchHistory();
  const recorded = JSON.parse(historyToJSON(history)) as object;
  const text = JSON.stringify({ workflowId, ...recorded });
  // The stack trace of a failure has file paths. The recorded history does not need the folder of this machine.
  await writeFile(file, `${text.replaceAll(`${ROOT}${path.sep}`, '')}\n`);
  console.log(`${path.basename(file)}: ${history.events?.length ?? 0} events`);
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
