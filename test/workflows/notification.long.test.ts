import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from '@jest/globals';
import { freePort } from '../../tools/lib/free-port';
import { FASTEST_OPTIONS } from '../harness/test-batch';
import { eventually } from '../../tools/lib/eventually';
import { collectWorkflowIds } from '../harness/workflow-ids';
import { ProcessEnvironment } from '../harness/process-environment';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';

const VENV = path.join(ROOT, '.cache/e2e/receiver');
const python = path.join(VENV, 'bin/python');
const folder = temporaryFolder();

beforeAll(async () => {
  const run = promisify(execFile);
  await run('python3', ['-m', 'venv', VENV]);
  await run(python, ['-m', 'pip', 'install', '-q', 'standardwebhooks==1.1.0']);
});

// Proves N1.
it('a Python receiver that was unavailable receives the notification after its start, signed with the newest secret', async () => {
  const port = await freePort();
  const [old, next] = [1, 2].map(() => `whsec_${randomBytes(32).toString('base64')}`) as [string, string];
  const secretFile = path.join(folder, 'secret');
  writeFileSync(secretFile, old);
  const env = {
    FOLLOW_UP_NOTIFY_URL: `http://127.0.0.1:${port}/?token=a-token-of-theirs`,
    FOLLOW_UP_NOTIFY_SECRET_FILE: secretFile,
  };
  await ProcessEnvironment.with({ env }, async (environment) => {
    const worker = await environment.startWorker();
    const following = await environment.follow({}, FASTEST_OPTIONS);
    expect((await following.result()).status).toBe('completed');
    const query = `WorkflowType = 'followUpNotification' AND TaskQueue = '${environment.taskQueue}'`;
    const first = async () => (await collectWorkflowIds(environment.client.workflow.list({ query })))[0];
    const workflowId = await eventually('the notification workflow is in the visibility list', first);
    const notification = environment.client.workflow.getHandle(workflowId);
    const pending = async () =>
      (await notification.describe()).raw.pendingActivities?.[0]?.lastFailure?.message;
    expect(await eventually('an attempt of the notification has failed', pending)).toBe(
      'the receiver did not respond (ECONNREFUSED)',
    );

    writeFileSync(secretFile, `${next},${old}\n`);
    // The receiver is the example of the documentation, which uses the Python library of Standard Webhooks.
    const args = ['-B', path.join(ROOT, 'examples/python/receiver.py'), String(port)];
    const receiver = spawn(python, args, { env: { PATH: process.env.PATH, NOTIFY_SECRET: next } });
    let printed = '';
    receiver.stdout.on('data', (text: Buffer) => (printed += text.toString()));
    await notification
      .result()
      .then(() =>
        eventually('the receiver has printed the notification', () => printed.endsWith(' completed\n')),
      )
      .finally(() => receiver.kill());
    expect(printed).toBe(
      `listening\n${workflowId} follow-up.ended ${following.handle.workflowId} completed\n`,
    );
    const shown = JSON.stringify([await notification.fetchHistory(), worker.log()]);
    for (const hidden of [old, next, 'a-token-of-theirs']) expect(shown).not.toContain(hidden);
  });
});
