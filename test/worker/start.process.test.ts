import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, expect, it } from '@jest/globals';
import { freePort } from '../../tools/lib/free-port';
import { grpcServer, serverWithVersion } from '../temporal/grpc-server';
import { WorkerProcess } from '../harness/worker-process';

const KEY = 'svc_9d2b7c41e0f6';
const AGENT = { AGENT_API_BASE_URL: 'http://127.0.0.1:9', AGENT_API_KEY: KEY };

const stops: (() => unknown)[] = [];
afterEach(() => Promise.all(stops.splice(0).map((stop) => stop())));

async function startWorker(env: NodeJS.ProcessEnv): Promise<WorkerProcess> {
  const worker = await WorkerProcess.start({ ...AGENT, ...env });
  stops.push(() => worker.stop());
  return worker;
}

/** Keeps a port occupied. If another process has the port, for example another run of these tests, listens as soon as it is free. */
async function occupyPort(port: number): Promise<number> {
  const server = createServer();
  const listen = () => server.listen(port, '127.0.0.1');
  const retry = setInterval(() => server.listening || listen(), 10);
  stops.push(() => {
    clearInterval(retry);
    server.close();
  });
  server.on('error', () => undefined);
  await once(listen(), 'listening').catch(() => undefined);
  return (server.address() as AddressInfo | null)?.port ?? port;
}

it('a worker reports every configured address that is already in use, and exits with code 2', async () => {
  const [health, metrics] = [await occupyPort(0), await occupyPort(0)];
  const worker = await startWorker({
    FOLLOW_UP_HEALTH_ADDRESS: `127.0.0.1:${health}`,
    FOLLOW_UP_METRICS_ADDRESS: `127.0.0.1:${metrics}`,
  });
  expect(await worker.exited).toEqual({ code: 2, signal: null });
  expect(worker.stderr).toContain('its configuration has 2 problems');
  expect(worker.stderr).toContain(`FOLLOW_UP_HEALTH_ADDRESS: 127.0.0.1:${health} can't be used`);
  expect(worker.stderr).toContain(`FOLLOW_UP_METRICS_ADDRESS: 127.0.0.1:${metrics} can't be used`);
});

it('if a default port is in use, the worker logs a warning; it retries the connection to the Temporal server until SIGTERM, and exits with code 0', async () => {
  await occupyPort(9465);
  await occupyPort(9464);
  const nowhere = await freePort();
  const worker = await startWorker({
    TEMPORAL_ADDRESS: `127.0.0.1:${nowhere}`,
    FOLLOW_UP_HEALTH_ADDRESS: '',
    FOLLOW_UP_METRICS_ADDRESS: '',
  });
  expect(await worker.waitForLog(/^health checks are off: /)).toMatchObject({ level: 'warn' });
  expect(await worker.waitForLog(/^metrics are off: /)).toMatchObject({ level: 'warn' });
  expect(await worker.waitForLog(/^listening$/)).toMatchObject({ health: 'off', metrics: 'off' });
  await worker.waitForLog(/^waiting for the Temporal server \(next try in 1s\)/);
  await worker.waitForLog(/^waiting for the Temporal server \(next try in 2s\)/);
  worker.signal('SIGTERM');
  expect(await worker.exited).toEqual({ code: 0, signal: null });
});

// test/client/connect.test.ts covers the other connection failures.
it('a worker whose credentials the Temporal server rejects exits with code 1, and does not show the credentials', async () => {
  const temporal = { TEMPORAL_ADDRESS: await grpcServer(16), TEMPORAL_TLS: 'false' };
  const worker = await startWorker({ ...temporal, TEMPORAL_API_KEY: 'temporal-secret' });
  expect(await worker.exited).toEqual({ code: 1, signal: null });
  const { level } = await worker.waitForLog(/^the worker cannot start: .* check TEMPORAL_API_KEY/);
  expect(level).toBe('error');
  expect(worker.stdout + worker.stderr).not.toContain('temporal-secret');
});

// Proves T7.
it('a worker on a Temporal server that is too old exits with code 1, and names the oldest supported version', async () => {
  const worker = await startWorker({ TEMPORAL_ADDRESS: await serverWithVersion('1.28.0') });
  expect(await worker.exited).toEqual({ code: 1, signal: null });
  const { level } = await worker.waitForLog(
    /^the worker cannot start: The Temporal server at \S+ has the version "1\.28\.0"\. Upgrade it to version \d/,
  );
  expect(level).toBe('error');
});
