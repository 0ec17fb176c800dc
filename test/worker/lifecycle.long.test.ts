import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from '@jest/globals';
import { SEARCH_ATTRIBUTES } from '../../src/contract/names';
import { type DevServer, startDevServer } from '../../tools/lib/dev-server';
import { freePort } from '../../tools/lib/free-port';
import { ACCEPTED_BY_RESPONSE } from '../harness/follow-up-under-test';
import { ProcessEnvironment } from '../harness/process-environment';
import { temporal } from '../harness/temporal';
import { temporaryFolder } from '../harness/temporary-folder';

const folder = temporaryFolder();

let server: DevServer | undefined;
afterAll(() => server?.stop());

/** Runs a test on separate task queues. The HTTP timeout is longer than the time that a worker takes to drain. */
const within = (test: (environment: ProcessEnvironment) => Promise<void>) =>
  ProcessEnvironment.with({ env: { AGENT_API_TIMEOUT: '30s' } }, test);

/** Starts a worker and a follow-up, and waits until the agent service holds the follow-up's POST. */
async function startWithHeldPost(environment: ProcessEnvironment, env: NodeJS.ProcessEnv = {}) {
  const worker = await environment.startWorker(env);
  const following = await environment.follow({}, {}, { name: 'hold', operation: 'message', times: 1 });
  await following.waitForRequest({ operation: 'message', fault: 'hold' });
  return { worker, following };
}

it.concurrent(
  'a worker starts before the Temporal server and the namespace exist, registers the search attributes, and becomes unready when the Temporal server stops',
  () =>
    within(async (environment) => {
      const port = await freePort();
      const address = `127.0.0.1:${port}`;
      const later = { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: 'later' };
      const worker = await environment.spawnWorker(later);
      await worker.waitForLog(/^waiting for the Temporal server .*ConnectionRefused/);
      const { cli } = temporal();
      server = await startDevServer({ cli, port });
      await worker.waitForLog(/does not exist.*temporal operator namespace create/);
      const create = ['operator', 'namespace', 'create', '--namespace', 'later', '--address', address];
      await promisify(execFile)(cli, create);
      await worker.waitForLog(/^ready$/);
      expect(await worker.waitForReadyz(200)).toEqual([]);
      const { msg } = await worker.waitForLog(/^search attributes registered/);
      for (const name of SEARCH_ATTRIBUTES) expect(msg).toContain(name);

      await server.stop();
      expect(await worker.waitForReadyz(503)).toEqual([expect.stringContaining(address)]);
    }),
);

// Proves W6.
it.concurrent(
  'after SIGTERM, the worker finishes a POST in progress and records its outcome, so that the message is sent once',
  () =>
    within(async (environment) => {
      const { worker, following } = await startWithHeldPost(environment);
      // Two signals at the same moment count as one, because npm forwards a Ctrl-C a second time.
      worker.signal('SIGINT');
      worker.signal('SIGTERM');
      await worker.waitForLog(/^draining; /);
      expect(await worker.waitForReadyz(503)).toEqual(['the worker is shutting down']);
      expect((await worker.fetchHealth('/healthz')).status).toBe(200);
      following.releaseHeldRequests();
      expect(await worker.exited).toEqual({ code: 0, signal: null });
      // The next worker on the same task queues completes the follow-up.
      await environment.startWorker();
      expect((await following.result()).receipt.delivery).toEqual(ACCEPTED_BY_RESPONSE);
      expect(following.posts()).toHaveLength(1);
    }),
);

// Proves W6.
it.concurrent(
  'after a bug (an uncaught exception), the worker finishes a POST in progress, records its outcome, and exits with code 1',
  () =>
    within(async (environment) => {
      const bug = path.join(folder, 'bug.cjs');
      await writeFile(bug, "process.on('SIGUSR2', () => { throw new Error('a bug'); });");
      const { worker, following } = await startWithHeldPost(environment, {
        NODE_OPTIONS: `--require ${bug}`,
      });
      worker.signal('SIGUSR2');
      await worker.waitForLog(/^the worker exits because of a bug/);
      await worker.waitForLog(/^draining; /);
      following.releaseHeldRequests();
      expect(await worker.exited).toEqual({ code: 1, signal: null });
      await environment.startWorker();
      expect((await following.result()).receipt.delivery).toEqual(ACCEPTED_BY_RESPONSE);
      expect(following.posts()).toHaveLength(1);
    }),
);

it.concurrent(
  'while the agent service accepts connections and does not respond, the worker becomes ready after the timeout of the key check; with a wrong key, the worker does not become ready',
  () =>
    within(async (environment) => {
      const sockets: Socket[] = [];
      const silent = createServer((socket) => sockets.push(socket));
      await once(silent.listen(0, '127.0.0.1'), 'listening');
      try {
        const { port } = silent.address() as AddressInfo;
        const AGENT_API_BASE_URL = `http://127.0.0.1:${port}`;
        const worker = await environment.startWorker({ AGENT_API_BASE_URL, AGENT_API_TIMEOUT: '1s' });
        expect(await worker.waitForReadyz(200)).toEqual([]);
      } finally {
        silent.close();
        for (const socket of sockets) socket.destroy();
      }
      const rejected = await environment.startWorker({ AGENT_API_KEY: 'svc_wrong_key_123' });
      await rejected.waitForLog(/^the agent service can't be used with these settings: http 401/);
      expect(await rejected.waitForReadyz(503)).toEqual([expect.stringContaining('http 401')]);
    }),
);

// Proves W6.
it.concurrent('a second SIGTERM ends the process at once', () =>
  within(async (environment) => {
    const { worker } = await startWithHeldPost(environment);
    const again = setInterval(() => {
      worker.signal('SIGTERM');
    }, 300);
    const exit = await worker.exited.finally(() => {
      clearInterval(again);
    });
    expect(exit).toEqual({ code: 143, signal: null });
    await worker.waitForLog(/^SIGTERM again: exiting immediately/);
  }),
);
