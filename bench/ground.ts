import { closeSync, mkdirSync, openSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { workersPolling } from '../src/temporal/sdk-internals';
import { type DevServerOptions, stripTemporalEnv } from '../dev/dev-server';
import { freePorts } from '../dev/free-ports';
import { spawnTethered, type TetheredProcess } from '../dev/tether';
import { type Sandbox, startSandbox } from '../sandbox';
import type { Contestant } from './contestants';
import { cpuSeconds } from './process-usage';

const LOG_FOLDER = path.resolve(__dirname, '../.cache/bench');

/**
 * The server hands timers and retries out up to a second late, to take them in bunches. With a twentieth of that, sixty
 * polls take seconds instead of minutes; it changes the CPU time of a poll by less than other programs do (measured).
 * So short bunches are many, and the server's limit of 20 of them a second would hold timers of 100 ms up for as long as
 * 23 s, with half of the machine idle (measured).
 */
export const QUICK_TIMERS = {
  'history.timerProcessorMaxTimeShift': '50ms',
  'history.timerProcessorMaxPollRPS': 1_000,
  'history.timerProcessorMaxPollHostRPS': 1_000,
};

/** A worker that bundles its workflows takes some five seconds, and on a busy machine several times that. */
const READY_LIMIT_MS = 90_000;

/** The server brings its metrics up to date once a second. */
const METRICS_DELAY_MS = 1_500;

/** The Temporal server that is measured: the dev server, or one on a database of its own. */
export interface BenchServer {
  readonly address: string;
  readonly pid: number;
  /** Where its database is processes of its own: all of them, and the server. */
  pids?(): Promise<number[]>;
  stop(): Promise<unknown>;
}

export type StartServer = (
  options: Pick<DevServerOptions, 'metricsPort' | 'searchAttributes' | 'dynamicConfig'>,
) => Promise<BenchServer>;

/** Where everything is measured: a Temporal server of its own, the sandbox in this process, worker processes. */
export class Ground {
  private readonly workers: TetheredProcess[] = [];

  private constructor(
    readonly server: BenchServer,
    private readonly metricsUrl: string,
    readonly sandbox: Sandbox,
    readonly client: Client,
  ) {}

  /** @param dynamicConfig settings of the server by name, on top of those that the project needs */
  static async open(
    start: StartServer,
    dynamicConfig: NonNullable<DevServerOptions['dynamicConfig']>,
  ): Promise<Ground> {
    mkdirSync(LOG_FOLDER, { recursive: true });
    const [metricsPort = 0] = await freePorts(1);
    const server = await start({ metricsPort, searchAttributes: true, dynamicConfig });
    try {
      const connection = await Connection.connect({ address: server.address });
      const sandbox = await startSandbox({ seedJobs: false, messagesPerHour: null });
      const metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`;
      return new Ground(server, metricsUrl, sandbox, new Client({ connection }));
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  /** Starts the worker process of a contestant and waits until it polls. @returns its process id */
  async startWorker(contestant: Contestant, env: NodeJS.ProcessEnv = {}): Promise<number> {
    const { name, program, taskQueue } = contestant;
    const logFile = path.join(LOG_FOLDER, `${name}.log`);
    const log = openSync(logFile, 'w');
    const worker = await spawnTethered(process.execPath, program, {
      env: { ...this.workerEnv(), ...env },
      stdout: log,
      stderr: log,
    }).finally(() => {
      closeSync(log);
    });
    this.workers.push(worker);
    const end = { come: false };
    void worker.exited.then(() => (end.come = true));
    const giveUpAt = Date.now() + READY_LIMIT_MS;
    while ((await workersPolling(this.client, taskQueue)).length === 0) {
      if (end.come || Date.now() > giveUpAt) {
        throw new Error(`the worker of ${name} does not work; it logs to ${logFile}`);
      }
      await sleep(100);
    }
    return worker.pid;
  }

  /** The processes that it has started, in their order. */
  workerPids(): number[] {
    return this.workers.map(({ pid }) => pid);
  }

  private workerEnv(): NodeJS.ProcessEnv {
    return {
      ...stripTemporalEnv(process.env),
      TEMPORAL_ADDRESS: this.server.address,
      AGENT_API_BASE_URL: this.sandbox.baseUrl,
      AGENT_API_KEY: this.sandbox.apiKey,
      FOLLOW_UP_HEALTH_ADDRESS: 'off',
      FOLLOW_UP_METRICS_ADDRESS: 'off',
    };
  }

  /** Seconds of CPU that server and database have used together. */
  async serverCpuSeconds(): Promise<number> {
    const pids = (await this.server.pids?.()) ?? [this.server.pid];
    const used = await Promise.all(pids.map((pid) => cpuSeconds(pid).catch(() => 0)));
    return used.reduce((sum, seconds) => sum + seconds, 0);
  }

  /** Heartbeats that have reached the server since its start: billed, and in no history. */
  async heartbeats(): Promise<number> {
    await sleep(METRICS_DELAY_MS);
    const text = await (await fetch(this.metricsUrl)).text();
    const line =
      /^service_requests\{[^}]*operation="RecordActivityTaskHeartbeat"[^}]*service_name="frontend"[^}]*\} (\S+)$/m;
    return Number(line.exec(text)?.[1] ?? 0);
  }

  /** Ends everything that was started, whatever state it is in; what is under way is given up. */
  async close(): Promise<void> {
    for (const worker of this.workers) worker.kill('SIGKILL');
    await Promise.all(this.workers.map((worker) => worker.stop()));
    await this.sandbox.close();
    await this.client.connection.close();
    await this.server.stop();
  }
}
