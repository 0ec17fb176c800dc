import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer as createGrpcServer } from 'node:http2';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { freePorts } from '../../../dev/free-ports';
import { version } from '../../../package.json';
import { ROOT, WorkerProcess } from '../../harness/worker-process';

const KEY = 'svc_9d2b7c41e0f6';
const AGENT = { AGENT_API_BASE_URL: 'http://127.0.0.1:9', AGENT_API_KEY: KEY };

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function startWorker(env: NodeJS.ProcessEnv, program?: string): Promise<WorkerProcess> {
  const worker = await WorkerProcess.start(env, program);
  cleanUps.push(() => worker.stop());
  return worker;
}

/** Listens at a port, or finds that somebody else does. */
async function take(port: number): Promise<number> {
  const server: Server = createServer();
  const taken = await new Promise<boolean>((resolve) => {
    server.once('error', () => {
      resolve(true);
    });
    server.listen(port, '127.0.0.1', () => {
      resolve(false);
    });
  });
  if (taken) return port;
  cleanUps.push(async () => {
    server.close();
    await once(server, 'close');
  });
  return (server.address() as AddressInfo).port;
}

/** The address of a Temporal server that isn't there. */
async function nowhere(): Promise<string> {
  const [port = 0] = await freePorts(1);
  return `127.0.0.1:${port}`;
}

describe('the command line of the worker', () => {
  it.each([
    ['--help', 0, 'stdout', /^Works on follow-ups .*\n {2}AGENT_API_KEY_FILE\n.*--version\n$/s],
    ['--version', 0, 'stdout', /^\d+\.\d+\.\d+\n$/],
    ['start', 2, 'stderr', /^error: the worker takes --help, --version, or --check-key/],
  ] as const)('with %s starts nothing', (word, code, stream, words) => {
    const [program, node] = [path.join(ROOT, 'dist/worker.js'), process.execPath] as const;
    const ended = spawnSync(node, [program, word], { encoding: 'utf8', timeout: 20_000 });
    expect(ended).toMatchObject({ status: code, [stream]: expect.stringMatching(words) });
  });
});

describe('a worker that is misconfigured', () => {
  it('says everything in one message on stderr and ends with exit code 2', async () => {
    const worker = await startWorker({ AGENT_API_KEY: `${KEY} x`, AGENT_API_TIMEOUT: '5', LOG_LEVEL: 'x' });
    expect(await worker.exited).toEqual({ code: 2, signal: null });
    for (const name of ['AGENT_API_BASE_URL', 'AGENT_API_KEY', 'AGENT_API_TIMEOUT', 'LOG_LEVEL']) {
      expect(worker.stderr).toContain(`  ${name}: `);
    }
    expect(worker.stderr + worker.stdout).not.toContain(KEY);
    expect(worker.stdout).toBe('');
  });

  it('says at once that its key file is a pipe, also while nobody writes into it', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'worker-pipe-'));
    cleanUps.push(() => rm(folder, { recursive: true }));
    const pipe = path.join(folder, 'key');
    execFileSync('mkfifo', [pipe]);
    const worker = await startWorker({ ...AGENT, AGENT_API_KEY: '', AGENT_API_KEY_FILE: pipe });
    expect(await worker.exited).toEqual({ code: 2, signal: null });
    expect(worker.stderr).toContain(
      `AGENT_API_KEY_FILE: the key file ${JSON.stringify(pipe)} is a pipe, as <(…)`,
    );
  });

  it('names every address that was chosen and is taken, and ends with exit code 2', async () => {
    const [health, metrics] = [await take(0), await take(0)];
    const worker = await startWorker({
      ...AGENT,
      FOLLOW_UP_HEALTH_ADDRESS: `127.0.0.1:${health}`,
      FOLLOW_UP_METRICS_ADDRESS: `127.0.0.1:${metrics}`,
    });
    expect(await worker.exited).toEqual({ code: 2, signal: null });
    expect(worker.stderr).toContain('its configuration has 2 problems');
    expect(worker.stderr).toContain(`FOLLOW_UP_HEALTH_ADDRESS: 127.0.0.1:${health} can't be used`);
    expect(worker.stderr).toContain(`FOLLOW_UP_METRICS_ADDRESS: 127.0.0.1:${metrics} can't be used`);
  });
});

it('a taken default port is a warning, and the worker goes on without that server', async () => {
  await take(9465);
  await take(9464);
  const worker = await startWorker({
    ...AGENT,
    TEMPORAL_ADDRESS: await nowhere(),
    FOLLOW_UP_HEALTH_ADDRESS: '',
    FOLLOW_UP_METRICS_ADDRESS: '',
  });
  expect(await worker.says(/^no health checks: /)).toMatchObject({ level: 'warn' });
  expect(await worker.says(/^no metrics: /)).toMatchObject({ level: 'warn' });
  expect(await worker.says(/^listening$/)).toMatchObject({ health: 'off', metrics: 'off' });
  await worker.says(/^waiting for Temporal/);
});

describe('a worker whose Temporal server is not there', () => {
  it('says so at once and again, answers its probes, and ends with exit code 0 on SIGTERM', async () => {
    const address = await nowhere();
    const worker = await startWorker({ ...AGENT, TEMPORAL_ADDRESS: address });
    await worker.says(/refused.*next try in 1s/);
    await worker.says(/refused.*next try in 2s/);
    expect(await worker.ask('/healthz')).toMatchObject({ status: 200, body: { status: 'ok', version } });
    expect(await worker.answersReadyz(503)).toEqual([
      expect.stringContaining(`Temporal at ${address} is not up yet`),
    ]);
    worker.signal('SIGTERM');
    expect(await worker.exited).toEqual({ code: 0, signal: null });
  });

  it('logs its configuration at the start, its warnings, and never its key', async () => {
    const worker = await startWorker({
      ...AGENT,
      AGENT_API_BASE_URL: 'http://agents.example.com',
      TEMPORAL_ADDRESS: await nowhere(),
    });
    expect(await worker.says(/^the worker starts$/)).toMatchObject({
      level: 'info',
      version,
      agentApi: 'http://agents.example.com/',
      agentApiKey: 'from AGENT_API_KEY',
      agentApiTimeout: '30s',
      workflowTaskQueue: 'follow-up',
    });
    await worker.says(/^AGENT_API_BASE_URL is a plain http:.*unencrypted/);
    await worker.says(/^waiting for Temporal/);
    expect(worker.stdout + worker.stderr).not.toContain(KEY);
  });
});

it('a Temporal server that refuses the credentials ends the worker with exit code 1, and they are not shown', async () => {
  const server = createGrpcServer().on('stream', (stream) => {
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '16' },
      { endStream: true },
    );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  cleanUps.push(() => {
    server.close();
    return Promise.resolve();
  });
  const worker = await startWorker({
    ...AGENT,
    TEMPORAL_ADDRESS: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    TEMPORAL_API_KEY: 'temporal-secret',
    TEMPORAL_TLS: 'false',
  });
  expect(await worker.says(/^the worker cannot start: .* check TEMPORAL_API_KEY/)).toMatchObject({
    level: 'error',
  });
  expect(await worker.exited).toEqual({ code: 1, signal: null });
  expect(worker.stdout + worker.stderr).not.toContain('temporal-secret');
});

describe('the workflow bundle', () => {
  /** A copy of the compiled worker, inside the project so that it finds its packages. */
  async function copyOfDist(): Promise<string> {
    await mkdir(path.join(ROOT, '.cache'), { recursive: true });
    const folder = await mkdtemp(path.join(ROOT, '.cache/dist-copy-'));
    cleanUps.push(() => rm(folder, { recursive: true }));
    await cp(path.join(ROOT, 'package.json'), path.join(folder, 'package.json'));
    await cp(path.join(ROOT, 'dist'), path.join(folder, 'dist'), { recursive: true });
    return path.join(folder, 'dist');
  }

  it('that is missing stops the worker with exit code 1 and what to run', async () => {
    const dist = await copyOfDist();
    await rm(path.join(dist, 'workflow-bundle.js'));
    const worker = await startWorker(
      { ...AGENT, TEMPORAL_ADDRESS: await nowhere() },
      path.join(dist, 'worker.js'),
    );
    const line = await worker.says(/there is no workflow bundle/);
    expect(line).toMatchObject({ level: 'error', msg: expect.stringContaining('npm run build') });
    expect(await worker.exited).toEqual({ code: 1, signal: null });
  });
});
