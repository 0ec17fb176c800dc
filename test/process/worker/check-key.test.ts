import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type Sandbox, startSandbox } from '../../../sandbox';
import { temporal } from '../../harness/temporal';
import { ROOT, WorkerProcess } from '../../harness/worker-process';
import { JOB } from '../../wire/agent-api-under-test';
import { ConnectProxy } from '../../wire/connect-proxy';
import { answer, MisbehavingServer } from '../../wire/misbehaving-server';
import { selfSignedCertificate } from '../../wire/self-signed-certificate';

const WRONG_KEY = 'agnt_0000000000000000';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ seedJobs: false });
  sandbox.addJob({ projectId: 'docs', id: 'job-1' });
});
afterAll(() => sandbox.close());

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** Runs `worker.js --check-key` for a job of the project docs. */
function checkKey(jobId: string, env: Readonly<Record<string, string>> = {}) {
  const args = [path.join(ROOT, 'dist/worker.js'), '--check-key', '--project', 'docs', '--job', jobId];
  const agent = {
    AGENT_API_BASE_URL: sandbox.baseUrl,
    AGENT_API_KEY: sandbox.apiKey,
    AGENT_API_TIMEOUT: '3s',
  };
  return new Promise<{ code: number; stdout: string }>((resolve) => {
    execFile(
      process.execPath,
      args,
      { env: { PATH: process.env.PATH, ...agent, ...env } },
      (error, stdout) => {
        resolve({ code: Number(error?.code ?? 0), stdout });
      },
    );
  });
}

describe('worker.js --check-key', () => {
  it('tells a key that the service takes, with and without the job', async () => {
    expect(await checkKey('job-1')).toEqual({
      code: 0,
      stdout: 'the key may read the job; it is completed\n',
    });
    expect(await checkKey('no-such-job')).toEqual({
      code: 0,
      stdout: 'the service takes the key, and has no such job\n',
    });
  });

  it('tells a wrong key, a wrong URL and a service that is not there', async () => {
    const wrongKey = await checkKey('job-1', { AGENT_API_KEY: WRONG_KEY });
    expect(wrongKey).toEqual({
      code: 1,
      stdout: expect.stringMatching(/^http 401: the key is expired or wrong/),
    });
    expect(wrongKey.stdout).not.toContain(WRONG_KEY);
    const portal = await MisbehavingServer.start();
    cleanUps.push(() => portal.stop());
    portal.onRequest = answer(200, '<html>');
    expect(await checkKey('job-1', { AGENT_API_BASE_URL: portal.url })).toEqual({
      code: 1,
      stdout: 'http 200 with an HTML page instead of a job: check AGENT_API_BASE_URL\n',
    });
    expect(await checkKey('job-1', { AGENT_API_BASE_URL: 'http://127.0.0.1:9' })).toEqual({
      code: 1,
      stdout: 'ECONNREFUSED 127.0.0.1:9\n',
    });
  });

  it('uses HTTPS_PROXY, NO_PROXY and NODE_EXTRA_CA_CERTS, as the worker does', async () => {
    const certificate = selfSignedCertificate();
    const folder = await mkdtemp(path.join(tmpdir(), 'check-key-'));
    cleanUps.push(() => rm(folder, { recursive: true }));
    await writeFile(path.join(folder, 'ca.pem'), certificate.cert);
    const [server, proxy] = [await MisbehavingServer.start(certificate), await ConnectProxy.start()];
    cleanUps.push(
      () => server.stop(),
      () => proxy.stop(),
    );
    server.onRequest = answer(200, JOB);
    const env = { AGENT_API_BASE_URL: server.url, NODE_EXTRA_CA_CERTS: path.join(folder, 'ca.pem') };
    expect(await checkKey('job-1', { ...env, HTTPS_PROXY: proxy.url })).toMatchObject({ code: 0 });
    expect(proxy.asked).toEqual([`CONNECT 127.0.0.1:${server.port}`]);
    expect(await checkKey('job-1', { ...env, HTTPS_PROXY: proxy.url, NO_PROXY: '127.0.0.1' })).toMatchObject({
      code: 0,
    });
    expect(proxy.asked).toHaveLength(1);
  });
});

describe('the readiness of a worker', () => {
  async function startWorker(env: NodeJS.ProcessEnv): Promise<WorkerProcess> {
    const name = randomUUID().slice(0, 8);
    const worker = await WorkerProcess.start({
      TEMPORAL_ADDRESS: temporal().address,
      AGENT_API_BASE_URL: sandbox.baseUrl,
      AGENT_API_KEY: sandbox.apiKey,
      FOLLOW_UP_TASK_QUEUE: `follow-up-${name}`,
      AGENT_API_TASK_QUEUE: `read-${name}`,
      AGENT_API_SEND_TASK_QUEUE: `send-${name}`,
      ...env,
    });
    cleanUps.push(() => worker.stop());
    await worker.says(/^ready$/);
    return worker;
  }

  it('tells a wrong key before the first follow-up, in the log too, and asks the service once', async () => {
    const worker = await startWorker({ AGENT_API_KEY: WRONG_KEY });
    const reason =
      /^the agent service can't be used with these settings: http 401: the key is expired or wrong/;
    expect(await worker.says(reason)).toMatchObject({ level: 'warn' });
    const check = { projectId: 'agent-follow-up-check' };
    const asked = sandbox.journal.entries(check).length;
    for (let n = 0; n < 3; n += 1)
      expect(await worker.answersReadyz(503)).toEqual([expect.stringMatching(reason)]);
    expect(sandbox.journal.entries(check)).toHaveLength(asked);
  });

  it('is there with a key that the service takes, and with a service that is down', async () => {
    expect(await (await startWorker({})).answersReadyz(200)).toEqual([]);
    expect(
      await (await startWorker({ AGENT_API_BASE_URL: 'http://127.0.0.1:9' })).answersReadyz(200),
    ).toEqual([]);
  });
});
