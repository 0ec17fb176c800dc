import { closeSync, mkdirSync, openSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sandbox } from '../../sandbox';
import { freePorts } from '../lib/free-ports';
import { spawnTethered } from '../lib/tether';

/** From source: node and tsx start in about two seconds, webpack takes three more, and a busy machine several times that. */
const READY_LIMIT_MS = 90_000;

/** One HTTP exchange with a sandbox on this machine; it bounds how long the demo's end may take, too. */
const AGENT_API_TIMEOUT = '10s';
const DRAIN_LIMIT_MS = 40_000;

const LOG_FILE = path.resolve(__dirname, '../../.cache/demo/worker.log');

/**
 * The worker of the demo: the real program as a process, bound to the sandbox. Its `ready` waits until it works, and throws an
 * Error when it ends instead, or takes too long.
 */
export async function startDemoWorker(env: NodeJS.ProcessEnv, sandbox: Sandbox) {
  const [port = 0] = await freePorts(1);
  mkdirSync(path.dirname(LOG_FILE), { recursive: true });
  const log = openSync(LOG_FILE, 'w');
  const worker = await spawnTethered(
    process.execPath,
    ['--import', 'tsx', path.resolve(__dirname, '../../src/worker.ts')],
    {
      env: {
        ...env,
        AGENT_API_BASE_URL: sandbox.baseUrl,
        AGENT_API_KEY: sandbox.apiKey,
        AGENT_API_TIMEOUT,
        FOLLOW_UP_HEALTH_ADDRESS: `127.0.0.1:${port}`,
        FOLLOW_UP_METRICS_ADDRESS: 'off',
      },
      stdout: log,
      stderr: log,
      graceMs: DRAIN_LIMIT_MS,
    },
  ).finally(() => {
    closeSync(log);
  });
  const ended = worker.exited.then(() => true);
  const ready = async (): Promise<void> => {
    const giveUpAt = Date.now() + READY_LIMIT_MS;
    while (!(await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null))?.ok) {
      if ((await Promise.race([ended, sleep(100, false)])) || Date.now() > giveUpAt) {
        throw new Error(`the worker is not ready; ${LOG_FILE} says why`);
      }
    }
  };
  return { ...worker, logFile: LOG_FILE, ready };
}
