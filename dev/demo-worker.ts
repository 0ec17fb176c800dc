import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
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

/** The worker of the demo: the real program, as a process of its own, bound to the sandbox. */
export class DemoWorker {
  readonly logFile = LOG_FILE;

  private constructor(
    private readonly process: TetheredProcess,
    private readonly healthAddress: string,
  ) {}

  static async start(env: NodeJS.ProcessEnv, sandbox: Sandbox): Promise<DemoWorker> {
    const [port = 0] = await freePorts(1);
    const healthAddress = `127.0.0.1:${port}`;
    mkdirSync(path.dirname(LOG_FILE), { recursive: true });
    const log = openSync(LOG_FILE, 'w');
    try {
      const main = path.resolve(__dirname, '../src/worker.ts');
      const worker = await spawnTethered(process.execPath, ['--import', 'tsx', main], {
        env: {
          ...env,
          AGENT_API_BASE_URL: sandbox.baseUrl,
          AGENT_API_KEY: sandbox.apiKey,
          AGENT_API_TIMEOUT,
          FOLLOW_UP_HEALTH_ADDRESS: healthAddress,
          FOLLOW_UP_METRICS_ADDRESS: 'off',
        },
        stdout: log,
        stderr: log,
        graceMs: DRAIN_LIMIT_MS,
      });
      return new DemoWorker(worker, healthAddress);
    } finally {
      closeSync(log);
    }
  }

  get exited(): Promise<unknown> {
    return this.process.exited;
  }

  /** Waits until the worker works. @throws Error with the worker's last words when it ends instead, or takes too long */
  async ready(): Promise<void> {
    const giveUpAt = Date.now() + READY_LIMIT_MS;
    const end = { come: false };
    void this.process.exited.then(() => (end.come = true));
    for (;;) {
      const answer = await fetch(`http://${this.healthAddress}/readyz`).catch(() => null);
      if (answer?.ok) return;
      if (end.come || Date.now() > giveUpAt) {
        const words = readFileSync(LOG_FILE, 'utf8').trim().split('\n').slice(-10).join('\n');
        throw new Error(`the worker ${end.come ? 'ended' : 'is not ready'}; its last words:\n${words}`);
      }
      await sleep(100);
    }
  }

  /** Lets it drain, as SIGTERM does. */
  async stop(): Promise<void> {
    await this.process.stop();
  }
}
