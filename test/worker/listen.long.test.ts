import path from 'node:path';
import { expect, it } from '@jest/globals';
import { freePort } from '../../tools/lib/free-port';
import { scrape } from '../../tools/lib/scrape';
import { ProcessEnvironment } from '../harness/process-environment';

/** Runs Node as on a machine whose kernel has no IPv6. */
const WITHOUT_IPV6 = [
  'python3',
  path.join(__dirname, '../harness/without-ipv6.py'),
  process.execPath,
] as const;

it.each([
  ['over IPv4 and over IPv6', '[::]', [process.execPath], ['127.0.0.1', '[::1]']],
  ['over IPv4 if the machine has no IPv6', '0.0.0.0', WITHOUT_IPV6, ['127.0.0.1']],
] as const)(
  'a worker that listens at [::] serves its health checks and metrics %s',
  (_, listensAt, node, hosts) =>
    ProcessEnvironment.with({}, async (environment) => {
      const [health, metrics] = [await freePort(), await freePort()];
      const addresses = {
        FOLLOW_UP_HEALTH_ADDRESS: `[::]:${health}`,
        FOLLOW_UP_METRICS_ADDRESS: `[::]:${metrics}`,
      };
      const worker = await environment.startWorker(addresses, node);
      expect(await worker.waitForLog(/^listening$/)).toMatchObject({
        health: `${listensAt}:${health}`,
        metrics: `${listensAt}:${metrics}`,
      });
      for (const host of hosts) {
        expect((await fetch(`http://${host}:${health}/healthz`)).status).toBe(200);
        const names = (await scrape(`${host}:${metrics}`)).map(({ name }) => name);
        expect(names).toContain('agent_follow_up_worker_info');
      }
    }),
);
