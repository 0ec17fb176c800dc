import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { freePorts } from '../../dev/free-ports';
import { PENDING_ACTIVITY_STARTED } from '../../src/temporal/sdk-internals';
import { SWIFT } from '../harness/batch-of-test';
import { eventually } from '../harness/eventually';
import { listed } from '../harness/listed';
import { ProcessEnvironment } from '../harness/process-environment';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';

// A first run installs the Python library.
jest.setTimeout(300_000);

const VENV = path.join(ROOT, '.cache/doors/receiver');
const python = path.join(VENV, 'bin/python');
const folder = temporaryFolder();

beforeAll(async () => {
  const run = promisify(execFile);
  await run('python3', ['-m', 'venv', VENV]);
  await run(python, ['-m', 'pip', 'install', '-q', 'standardwebhooks==1.1.0']);
});

const receivers: { kill(signal: NodeJS.Signals): boolean }[] = [];
afterAll(() => {
  for (const receiver of receivers) receiver.kill('SIGKILL');
});

/** The example's receiver as a process, with the Python library. */
async function startReceiver(port: number, secret: string) {
  const args = ['-B', path.join(ROOT, 'examples/python/receiver.py'), String(port)];
  const receiver = spawn(python, args, { env: { PATH: process.env.PATH, NOTIFY_SECRET: secret } });
  receivers.push(receiver);
  let printed = '';
  receiver.stdout.on('data', (text: Buffer) => (printed += text.toString()));
  await eventually('the receiver listens', () => printed.includes('listening'));
  return { receiver, printed: () => printed };
}

// Proves N1.
it('a receiver in Python that was away, froze and was killed is told once it is back, under one id and by the newest secret', async () => {
  const [port = 0] = await freePorts(1);
  const [old, next] = [1, 2].map(() => `whsec_${randomBytes(32).toString('base64')}`) as [string, string];
  const secretFile = path.join(folder, 'secret');
  writeFileSync(secretFile, old);
  const env = {
    FOLLOW_UP_NOTIFY_URL: `http://127.0.0.1:${port}/?token=a-token-of-theirs`,
    FOLLOW_UP_NOTIFY_SECRET_FILE: secretFile,
  };
  await ProcessEnvironment.with({ env }, async (environment) => {
    const worker = await environment.startWorker();
    const following = await environment.follow({}, SWIFT);
    expect((await following.result()).status).toBe('completed');
    const query = `WorkflowType = 'followUpNotice' AND TaskQueue = '${environment.taskQueue}'`;
    const first = async () => (await listed(environment.client.workflow.list({ query })))[0];
    const workflowId = await eventually('the notice is listed', first);
    const notice = environment.client.workflow.getHandle(workflowId);
    const pending = async () => (await notice.describe()).raw.pendingActivities?.[0];
    const unheard = await eventually('nobody listens', pending, {
      until: (activity) => activity.lastFailure?.message !== undefined,
    });
    expect(unheard.lastFailure?.message).toBe('no answer from the receiver (ECONNREFUSED)');

    const frozen = await startReceiver(port, old);
    frozen.receiver.kill('SIGSTOP');
    await eventually('it is asked', pending, {
      until: (activity) => Number(activity.state) === PENDING_ACTIVITY_STARTED,
    });
    const dead = once(frozen.receiver, 'exit');
    frozen.receiver.kill('SIGKILL');
    await dead;

    writeFileSync(secretFile, `${next},${old}\n`);
    const second = await startReceiver(port, next);
    await notice.result();
    const line = `${workflowId} follow-up.ended ${following.handle.workflowId} completed\n`;
    expect(second.printed()).toBe(`listening\n${line}`);
    expect(frozen.printed()).toBe('listening\n');
    const shown = JSON.stringify([await notice.fetchHistory(), worker.log()]);
    for (const hidden of [old, next, 'a-token-of-theirs']) expect(shown).not.toContain(hidden);
  });
});
