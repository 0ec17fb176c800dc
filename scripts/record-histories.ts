/**
 * Records the histories of follow-ups of every kind, for the replay tests: `npm run record-histories`.
 *
 * A history is kept for ever, by the release whose workflow made it; a change to the workflow must still replay all of
 * them. Those of a release that is out are never recorded anew, so that a folder that exists is refused.
 */
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils';
import { version } from '../package.json';
import { startDevServer } from '../dev/dev-server';
import { FollowUpClient } from '../src/client';
import type { PollingRequest } from '../src/core/request';
import { bundleCode } from '../src/worker/bundle';
import { findTemporalCli } from '../dev/temporal-cli';
import { eventually } from '../test/harness/eventually';
import { Environment } from '../test/harness/environment';
import { type Following, QUICK } from '../test/harness/following';
import { pendingRead } from '../test/harness/pending-poll';

const ROOT = path.resolve(__dirname, '..');

const endless = { turn: { durationMs: null } };

/** One read by a timer, one by the activity two seconds later, and then intervals of six seconds and more. */
const SLOW = { initial: '500ms', growth: 3, maximum: '10m', jitter: 0, timerPolls: 1 } as const;

type Paths = Record<string, (environment: Environment) => Promise<Following>>;

/** Each follows one path through the workflow to its end. */
const paths: Paths = {
  accepted: (environment) => environment.follow(),
  'ten-polls-by-timers': (environment) => ofPolls(environment, 10, { timerPolls: 'all' }),
  'ten-polls': (environment) => ofPolls(environment, 10),
  'sixty-polls': (environment) => ofPolls(environment, 60),
  'settled-without-link': (environment) => environment.follow({ turn: { outcome: 'no-change' } }),
  stale: async (environment) => {
    const following = await environment.follow(
      { pullRequest: true, turn: { durationMs: 3_000 } },
      { confirm: '5s' },
    );
    environment.sandbox.setFault({ name: 'stale', ...following.key, parameters: { for: '1s' } });
    return following;
  },
  'confirmed-unseen-turn': async (environment) => {
    const following = await environment.follow({ turn: { outcome: 'no-change' } });
    environment.sandbox.setFault({ name: 'invisible-turn', ...following.key });
    return following;
  },
  'waited-for-an-active-job': (environment) =>
    environment.follow({ status: 'active' }, { whenActive: 'wait' }),
  'rejected-active': (environment) => environment.follow({ status: 'active' }, { whenActive: 'reject' }),
  rejected: (environment) =>
    troubled(environment, { name: 'status', operation: 'message', parameters: { code: 403 } }),
  'sent-after-429': (environment) =>
    troubled(environment, { name: 'http-429', operation: 'message', times: 1 }),
  reconciled: (environment) => troubled(environment, { name: 'processed-then-close' }),
  'delivery-unknown': (environment) => troubled(environment, { name: 'reset', operation: 'message' }),
  resent: (environment) =>
    troubled(environment, { name: 'reset', operation: 'message', times: 1 }, { onUnknownDelivery: 'resend' }),
  'assumed-delivered': (environment) =>
    troubled(
      environment,
      { name: 'reset', operation: 'message', times: 1 },
      { onUnknownDelivery: 'assume-delivered' },
    ),
  asked: async (environment) => {
    const fault = { name: 'reset', operation: 'message', times: 1 } as const;
    const following = await troubled(environment, fault, { onUnknownDelivery: 'ask' });
    await following.progressWhen(({ phase }) => phase === 'needs-decision');
    await following.handle.executeUpdate('resolveDelivery', { args: ['not-delivered'] });
    return following;
  },
  'poll-trouble': async (environment) => {
    const following = await environment.follow();
    environment.sandbox.setFault({ name: 'http-503', ...following.key, operation: 'get', times: 2, skip: 1 });
    return following;
  },
  'steered-by-updates': async (environment) => {
    const following = await environment.follow(endless, { polling: { initial: '15s', maximum: '15s' } });
    await following.progressWhen(({ phase }) => phase === 'watching');
    await following.handle.executeUpdate('extendDeadline', { args: ['60s'] });
    environment.sandbox.changeJob(following.key, { status: 'failed' });
    await following.handle.executeUpdate('pollNow');
    return following;
  },
  'polled-on-polled-now': async (environment) => {
    const following = await environment.follow(endless, { polling: SLOW, deadline: '60s' });
    await polledOn(following);
    await following.handle.executeUpdate('pollNow');
    environment.sandbox.changeJob(following.key, { status: 'failed' });
    await following.handle.executeUpdate('pollNow');
    return following;
  },
  'polled-on-cancelled': async (environment) => {
    const following = await environment.follow(endless, { polling: SLOW, deadline: '60s' });
    await polledOn(following);
    await following.handle.cancel();
    return following;
  },
  'polled-on-asked': async (environment) => {
    const fault = { name: 'reset', operation: 'message', times: 1 } as const;
    const polling = { ...SLOW, growth: 1, timerPolls: 0 } as const;
    const asked = { onUnknownDelivery: 'ask', polling, deadline: '60s' } as const;
    const following = await troubled(environment, fault, asked);
    await polledOn(following);
    await following.handle.executeUpdate('resolveDelivery', { args: ['delivered'] });
    return following;
  },
  'polled-on-waited': async (environment) => {
    const polling = { initial: '1s', growth: 0, maximum: '1s', jitter: 0, timerPolls: 0 } as const;
    const asked = { whenActive: 'wait', polling, deadline: '60s' } as const;
    const following = await environment.follow({ status: 'active', ...endless }, asked);
    await polledOn(following);
    environment.sandbox.changeJob(following.key, { status: 'completed' });
    await environment.sandbox.journal.waitFor({ ...following.key, operation: 'message' });
    environment.sandbox.changeJob(following.key, { status: 'failed' });
    return following;
  },
  'job-not-found': (environment) => environment.send({ projectId: 'nowhere', jobId: 'nobody' }),
  deadline: (environment) => environment.follow(endless, { deadline: '4s' }),
  cancelled: async (environment) => {
    const following = await environment.follow(endless);
    await following.progressWhen(({ polls }) => polls > 1);
    await following.handle.cancel();
    return following;
  },
};

/** On a server that suggests to continue as new after a few polls, as every server does after 4,096 events. */
const continuing: Paths = {
  'continued-as-new': async (environment) => {
    const following = await environment.follow(endless, { polling: { ...QUICK.polling, timerPolls: 'all' } });
    const { runId } = await following.handle.describe();
    await following.progressWhen(({ polls }) => polls >= 10);
    if ((await following.handle.describe()).runId === runId)
      throw new Error('the run did not continue as new');
    environment.sandbox.changeJob(following.key, {
      status: 'completed',
      prLink: 'https://example.test/pull/11',
    });
    return following;
  },
};

/** A follow-up whose job ends at its poll of that number. */
async function ofPolls(
  environment: Environment,
  polls: number,
  how: PollingRequest = {},
): Promise<Following> {
  const polling = { initial: '200ms', growth: 0, maximum: '200ms', jitter: 0, ...how } as const;
  const following = await environment.follow(endless, { polling, deadline: '10m' });
  // The first GET is the look before the send.
  await environment.sandbox.journal.waitFor(
    { ...following.key, operation: 'get', ending: 'answered' },
    { atLeast: polls, timeoutMs: 120_000 },
  );
  environment.sandbox.changeJob(following.key, {
    status: 'completed',
    prLink: 'https://example.test/pull/10',
  });
  return following;
}

/** Waits until an activity that polls has made its first read. */
async function polledOn(following: Following): Promise<void> {
  await eventually('a heartbeat of the poll', async () => (await pendingRead(following))?.heartbeatDetails);
}

/** A follow-up to a job whose service misbehaves in one way. */
async function troubled(
  environment: Environment,
  fault: Parameters<Environment['sandbox']['setFault']>[0],
  asked: Parameters<Environment['follow']>[1] = {},
): Promise<Following> {
  const { projectId, jobId } = environment.sandbox.addJob({
    projectId: `with-${fault.name}`,
    turn: { durationMs: 3_000 },
  });
  environment.sandbox.setFault({ ...fault, projectId, jobId });
  return environment.send({ projectId, jobId, ...asked });
}

async function main(): Promise<void> {
  const folder = path.join(ROOT, 'test/workflows/replay/histories', version);
  if (process.argv.includes('--replace')) await rm(folder, { recursive: true, force: true });
  if (await stat(folder).catch(() => undefined)) {
    throw new Error(
      `the histories of ${version} are recorded; --replace records an unreleased version's anew`,
    );
  }
  const scratch = await mkdtemp(path.join(os.tmpdir(), 'record-histories-'));
  const bundlePath = path.join(scratch, 'workflow-bundle.js');
  await writeFile(bundlePath, await bundleCode());

  const cli = (await findTemporalCli({ env: process.env, say: console.error })).path;
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
      // A failure is the end of some paths.
      await handle.result().catch(() => undefined);
      const { runId: lastRunId } = await handle.describe();
      for (const [index, runId] of [...new Set([firstRunId, lastRunId])].entries()) {
        const file = `${name}${index === 0 ? '' : `-run-${index + 1}`}.json`;
        await save(environment, handle.workflowId, runId, path.join(folder, file));
      }
    }
  });
}

/** A batch in which an item fails beyond the tolerance, and the same one again, which finds what has ended. */
async function recordBatch(folder: string, bundlePath: string, cli: string): Promise<void> {
  await withEnvironment(bundlePath, cli, {}, async (environment) => {
    const { batches } = new FollowUpClient(environment.client, { taskQueue: environment.taskQueue });
    const requests = ['completed', 'failed', 'failed', 'completed'].map((outcome) => {
      const turn = { outcome: outcome === 'failed' ? 'failed' : 'new-pull-request' } as const;
      const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'batch', turn });
      return { ...QUICK, projectId, jobId, prompt: 'Rebase on main.' };
    });
    for (const [name, options] of [
      ['batch-beyond-tolerance', { concurrency: 1, tolerate: { items: 1 } }],
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

async function withEnvironment(
  bundlePath: string,
  cli: string,
  dynamicConfig: Record<string, number>,
  work: (environment: Environment) => Promise<void>,
): Promise<void> {
  const server = await startDevServer({ cli, searchAttributes: true, dynamicConfig });
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
  // A failure's stack names files; where they lie on this machine is nobody's business.
  await writeFile(file, `${text.replaceAll(`${ROOT}${path.sep}`, '')}\n`);
  console.log(`${path.basename(file)}: ${history.events?.length ?? 0} events`);
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
