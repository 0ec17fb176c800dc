import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { eventually } from '../../tools/lib/eventually';
import { mustRun, Program } from '../harness/program';
import type { WorkerProcess } from '../harness/worker-process';
import { readPageCommands } from './deployments/page-commands';
import { type EndToEndEnvironment, openEndToEndEnvironment, unpackedPath } from './end-to-end-environment';

let environment: EndToEndEnvironment;
const senders: Program[] = [];

beforeAll(async () => {
  environment = await openEndToEndEnvironment();
});

afterAll(async () => {
  for (const sender of senders) sender.signal('SIGKILL');
  await environment.close();
});

const run = (command: string) => mustRun('sh', ['-ec', command], { env: environment.env });
/** The Temporal server rejects a command about a version until workers of the version poll every task queue. */
const runUntilAccepted = (command: string) =>
  eventually(`this command succeeds: ${command}`, () => run(command), { intervalMs: 500 });

const startVersion = (buildId: string): Promise<WorkerProcess> =>
  environment.startWorker(process.execPath, {
    TEMPORAL_DEPLOYMENT_NAME: 'follow-up',
    TEMPORAL_WORKER_BUILD_ID: buildId,
  });

/** Starts a follow-up whose turn ends only when the test ends it, and waits for its message. */
async function send() {
  const { projectId, jobId } = environment.sandbox.addJob({ turn: { durationMs: null } });
  const times = '--max-staleness 1s --polling-initial 500ms --polling-maximum 500ms'.split(' ');
  const job = ['--project', projectId, '--job', jobId, '--prompt', 'Please fix the typo.'];
  const cli = [unpackedPath('cli', 'dist/starter.js'), 'send', ...job, ...times];
  const sender = new Program(process.execPath, cli, { env: environment.env });
  senders.push(sender);
  await environment.sandbox.journal.waitFor({ projectId, jobId, operation: 'message' });
  return { key: { projectId, jobId }, sender };
}

it('the commands of docs/upgrading.md move follow-ups in progress to another version and back, and each message is sent once', async () => {
  const heading = 'Replace the workers with Worker Versioning';
  const [ramp = '', moveAll = '', count = '', goBack = ''] = readPageCommands(
    'docs/upgrading.md',
    heading,
    {},
  );
  const older = await startVersion('1.0.0');
  await runUntilAccepted(goBack);
  const first = await send();
  const newer = await startVersion('1.1.0');
  await runUntilAccepted(ramp);
  await runUntilAccepted(moveAll);
  // The old worker may end before the follow-ups have moved.
  older.signal('SIGTERM');
  expect(await older.exited).toMatchObject({ code: 0 });
  const waitUntilMoved = (command: string) =>
    eventually('no running follow-up is on the version', () => run(command), {
      intervalMs: 500,
      until: (output) => /Total: 0\b/.test(output),
    });
  await waitUntilMoved(count);
  const second = await send();

  await startVersion('1.0.0');
  await runUntilAccepted(goBack);
  newer.signal('SIGTERM');
  expect(await newer.exited).toMatchObject({ code: 0 });
  await waitUntilMoved(count.replace('1.0.0', '1.1.0'));
  for (const { key, sender } of [first, second]) {
    environment.sandbox.changeJob(key, { status: 'completed' });
    expect(await sender.waitForEnd()).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^status +completed/),
    });
    expect(environment.sandbox.journal.entries({ ...key, operation: 'message' })).toHaveLength(1);
  }
});
