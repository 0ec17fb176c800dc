import { expect } from '@jest/globals';
import type { JobKey } from '../../../sandbox';
import { eventually } from '../../../tools/lib/eventually';
import { Program } from '../../harness/program';
import { type EndToEndEnvironment, unpackedPath } from '../end-to-end-environment';

/** A worker that runs in one way of deployment, as an operator controls it. */
export interface Deployment {
  /** Starts the worker. The worker may become ready later. */
  start(): Promise<unknown>;
  /** Sends a message to a job with the command of docs/deployment.md. Returns the output. */
  send(job: JobKey): Promise<string>;
  /** Stops the worker: the platform sends SIGTERM, and SIGKILL after its grace period. Returns after the worker has ended. */
  stop(): Promise<unknown>;
  /** Installs another version, and then the old version again, with the commands of docs/upgrading.md. Each command starts the worker. */
  readonly upgrades?: readonly (() => Promise<unknown>)[];
  /** Kills the worker with SIGKILL, and returns after it has ended. The platform must start the worker again without a command. */
  kill(): Promise<unknown>;
  /** Replaces the key of the agent service, as docs/operations.md describes. */
  rotateKey(key: string): Promise<unknown>;
  /** The port of the health checks. */
  readonly healthPort: number;
  /** Returns the log of the worker since its installation. */
  logs(): Promise<string>;
}

/** Runs the steps that every way of deployment must support. The worker is installed with a valid key, and was not started. */
export async function expectDeploymentSteps(
  deployment: Deployment,
  { sandbox, env }: EndToEndEnvironment,
): Promise<void> {
  const jobs: JobKey[] = [];
  const senders: Program[] = [];
  const addJob = (): JobKey => {
    const { projectId, jobId } = sandbox.addJob({ turn: { reads: 1 } });
    jobs.push({ projectId, jobId });
    return { projectId, jobId };
  };
  const send = (job: JobKey) => {
    const sender = sendMessage(job, env);
    senders.push(sender);
    return sender;
  };
  const countStarts = async () => (await deployment.logs()).split('"msg":"ready"').length - 1;
  /** Waits until the worker is ready for the given time, over IPv4 and IPv6. */
  const waitForStart = async (number: number) => {
    await eventually(`start ${number} is ready`, async () => (await countStarts()) === number);
    for (const host of ['127.0.0.1', '[::1]']) {
      const url = `http://${host}:${deployment.healthPort}/readyz`;
      await eventually(`${url} returns 200`, async () => (await fetch(url)).status === 200);
    }
  };
  /** Replaces the worker while a follow-up waits for the end of its turn. */
  const expectUpgrade = async (upgrade: () => Promise<unknown>, start: number) => {
    const job = sandbox.addJob({ turn: { durationMs: null } });
    jobs.push({ projectId: job.projectId, jobId: job.jobId });
    const sent = send(job);
    await sandbox.journal.waitFor({ projectId: job.projectId, jobId: job.jobId, operation: 'message' });
    await upgrade();
    await waitForStart(start);
    sandbox.changeJob(job, { status: 'completed' });
    await expectEnd(sent);
  };

  try {
    await deployment.start();
    await waitForStart(1);
    expect(await deployment.send(addJob())).toMatch(PR_LINK);

    sandbox.expireKeys();
    await deployment.rotateKey(sandbox.createKey());
    await expectLink(send(addJob()));
    const starts = await countStarts();

    const job = addJob();
    sandbox.setFault({ name: 'hold', operation: 'message', times: 1, ...job });
    const sent = send(job);
    await sandbox.journal.waitFor({ ...job, operation: 'message', fault: 'hold' });
    const stopped = deployment.stop();
    await eventually('the worker drains', async () =>
      (await deployment.logs()).includes('"msg":"draining; '),
    );
    sandbox.release(job);
    await stopped;
    const [post] = sandbox.journal.entries({ ...job, operation: 'message' });
    expect(post).toMatchObject({ status: 200, ending: 'answered' });
    // systemd adds lines of its own.
    const lines = (await deployment.logs()).split('\n').filter((line) => line.startsWith('{'));
    expect(lines.at(-1)).toContain('the worker has ended');
    await deployment.start();
    await waitForStart(starts + 1);
    await expectLink(sent);

    await deployment.kill();
    await waitForStart(starts + 2);
    await expectLink(send(addJob()));
    for (const [index, upgrade] of (deployment.upgrades ?? []).entries()) {
      await expectUpgrade(upgrade, starts + 3 + index);
    }
    for (const each of jobs)
      expect(sandbox.journal.entries({ operation: 'message', ...each })).toHaveLength(1);
  } finally {
    for (const sender of senders) sender.signal('SIGKILL');
  }
}

/** Sends a message with the CLI of the worker's archive, and waits for the outcome. */
function sendMessage({ projectId, jobId }: JobKey, env: NodeJS.ProcessEnv): Program {
  const job = ['--project', projectId, '--job', jobId, '--prompt', 'Please fix the typo.'];
  return new Program(
    process.execPath,
    [unpackedPath('worker', 'dist/starter.js'), 'send', ...job, ...TIMES.split(' ')],
    {
      env,
    },
  );
}

/** The times for a test. With the defaults, a follow-up without the status active takes a minute. */
const TIMES = '--max-staleness 1s --polling-initial 500ms';

/** Replaces the example job of a page's command, and adds the times for a test. */
export function forJob(command: string, { projectId, jobId }: JobKey): string {
  return command.replace('--project docs --job job-1', `--project ${projectId} --job ${jobId} ${TIMES}`);
}

/** Expects the end of a turn that opened no pull request. */
async function expectEnd(sent: Program): Promise<void> {
  const { code, stdout, stderr } = await sent.waitForEnd();
  expect({ code, stdout, stderr }).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^status +completed\n/),
  });
}

async function expectLink(sent: Pick<Program, 'waitForEnd'>): Promise<void> {
  const { code, stdout, stderr } = await sent.waitForEnd();
  expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: expect.stringMatching(PR_LINK) });
}

const PR_LINK = /^status +completed\nprLink +http\S+\/pull\/\d+/;
