import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, expect, it } from '@jest/globals';
import { SEARCH_ATTRIBUTES } from '../../src/contract/names';
import { type DevServer, startDevServer } from '../../tools/lib/dev-server';
import getPort from 'get-port';
import { ACCEPTED_BY_RESPONSE } from '../harness/follow-up-under-test';
import { ProcessEnvironment } from '../harness/process-environment';
import { temporal } from '../harness/temporal';

let server: DevServer | undefined;
afterAll(() => server?.stop());

/** Runs a test on separate task queues. The HTTP timeout is longer than the time that a worker takes to drain. */
const within = (test: (environment: ProcessEnvironment) => Promise<void>) =>
  ProcessEnvironment.with({ env: { AGENT_API_TIMEOUT: '30s' } }, test);

/** Starts a worker and a follow-up, and waits until the agent service holds the follow-up's POST. */
async function startWithHeldPost(environment: ProcessEnvironment) {
  const worker = await environment.startWorker();
  const following = await environment.follow({}, {}, { name: 'hold', operation: 'message', times: 1 });
  await following.waitForRequest({ operation: 'message', fault: 'hold' });
  return { worker, following };
}

it.concurrent(
  'a worker starts before the Temporal server and the namespace exist, registers the search attributes, and becomes unready when the Temporal server stops',
  () =>
    within(async (environment) => {
      const port = await getPort();
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
