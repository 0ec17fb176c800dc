import { closeSync, mkdirSync, openSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sandbox } from '../sandbox';
import { freePorts } from './free-ports';
import { spawnTethered, type TetheredProcess } from './tether';

/** From source: node and tsx start in about two seconds, webpack takes three more, and a busy machine several times that. */
const READY_LIMIT_MS = 90_000;

/** One HTTP exchange with a sandbox on this machine; it bounds how long the demo's end may take, too. */
const AGENT_API_TIMEOUT = '10s';
const DRAIN_LIMIT_MS = 40_000;

const LOG_FILE = path.resolve(__dirname, '../.cache/demo/worker.log');

export interface DemoWorker extends TetheredProcess {
  readonly logFile: string;
  /** Waits until the worker works. @throws Error when it ends instead, or takes too long */
  ready(): Promise<void>;
}

/** The worker of the demo: the real program, as a process of its own, bound to the sandbox. */
export async function startDemoWorker(env: NodeJS.ProcessEnv, sandbox: Sandbox): Promise<DemoWorker> {
  const [port = 0] = await freePorts(1);
  mkdirSync(path.dirname(LOG_FILE), { recursive: true });
  const log = openSync(LOG_FILE, 'w');
  const worker = await spawnTethered(
    process.execPath,
    ['--import', 'tsx', path.resolve(__dirname, '../src/worker.ts')],
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
