import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../lib/free-port';
import type { Sandbox } from '../../sandbox';

/** The timeout of the start. From source, node and tsx take about two seconds, and webpack takes three. A busy machine needs much longer. */
const READY_LIMIT_MS = 90_000;

/** The timeout of one HTTP request to a sandbox on this machine. The timeout also limits how long the end of the demo takes. */
const AGENT_API_TIMEOUT = '10s';
/** The longest shutdown of the worker. After this time, the worker is killed. */
const DRAIN_LIMIT_MS = 40_000;

const LOG_FILE = path.resolve(__dirname, '../../.cache/demo/worker.log');
const PROGRAM = path.resolve(__dirname, '../../src/worker.ts');

export type DemoWorker = ReturnType<typeof startDemoWorker> extends Promise<infer Worker> ? Worker : never;

/**
 * Starts the real worker as a process that uses the sandbox. `ready` waits until the worker is ready, and throws an Error if the
 * worker ends instead or takes too long. `stop` lets the worker finish its requests.
 */
export async function startDemoWorker(env: NodeJS.ProcessEnv, sandbox: Sandbox) {
  const port = await freePort();
  mkdirSync(path.dirname(LOG_FILE), { recursive: true });
  const log = openSync(LOG_FILE, 'w');
  const worker = spawn(process.execPath, ['--import', 'tsx', PROGRAM], {
    env: {
      ...env,
      AGENT_API_BASE_URL: sandbox.baseUrl,
      AGENT_API_KEY: sandbox.apiKey,
      AGENT_API_TIMEOUT,
      FOLLOW_UP_HEALTH_ADDRESS: `127.0.0.1:${port}`,
      FOLLOW_UP_METRICS_ADDRESS: 'off',
    },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const exited = once(worker, 'exit');
  const ended = exited.then(() => true);
  const ready = async (): Promise<void> => {
    const timeoutAt = Date.now() + READY_LIMIT_MS;
    while (!(await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null))?.ok) {
      if ((await Promise.race([ended, sleep(100, false)])) || Date.now() > timeoutAt) {
        throw new Error(`the worker did not become ready; read the reason in ${LOG_FILE}`);
      }
    }
  };
  const stop = async (): Promise<void> => {
    worker.kill('SIGTERM');
    const timer = setTimeout(() => worker.kill('SIGKILL'), DRAIN_LIMIT_MS);
    await exited.finally(() => {
      clearTimeout(timer);
    });
  };
  const kill = () => worker.kill('SIGKILL');
  return { pid: worker.pid, logFile: LOG_FILE, exited, ready, stop, kill };
}
