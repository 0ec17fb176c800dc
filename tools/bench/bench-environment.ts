import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { listPollingWorkers } from '../../src/temporal/raw-requests';
import { type DevServer, startDevServer, stripTemporalEnv } from '../lib/dev-server';
import { freePort } from '../lib/free-port';
import { type Sandbox, startSandbox } from '../../sandbox';
import { scrape } from '../lib/scrape';
import type { BenchSubject } from './subjects';

const LOG_FOLDER = path.resolve(__dirname, '../../.cache/bench');

/**
 * By default, the Temporal server delays timers and retries by up to a second, to process them in groups. With a delay of 50 ms, sixty
 * polls take seconds instead of minutes. The shorter delay affects the CPU time of a poll less than other programs on the machine do. A
 * shorter delay makes more groups, and by default the server allows 20 groups per second. With this limit, timers of 100 ms were up to
 * 23 s late while half of the machine was idle, so the limit is raised.
 */
const SERVER_SETTINGS = {
  'history.timerProcessorMaxTimeShift': '50ms',
  'history.timerProcessorMaxPollRPS': 1_000,
  'history.timerProcessorMaxPollHostRPS': 1_000,
  // As in production, the names of search attributes are cached. By default, the dev server reads them from its database at each use.
  'system.forceSearchAttributesCacheRefreshOnRead': false,
};

/** Limits the heap for a container of 1 GiB (`deploy/kubernetes`). The worker computes the size of its cache from this limit. */
export const IN_CONTAINER = { NODE_OPTIONS: '--max-old-space-size=768' };

/** The timeout of a worker's start. Bundling the workflows takes about five seconds, and several times longer on a busy machine. */
const READY_LIMIT_MS = 90_000;

/** The wait before metrics are read, because the Temporal server and the worker update their metrics once a second. */
const METRICS_DELAY_MS = 1_500;

/** The environment of a benchmark: a separate Temporal server, the sandbox in this process, and worker processes. */
export class BenchEnvironment {
  private readonly workers: ChildProcess[] = [];

  private constructor(
    readonly server: DevServer,
    private readonly metrics: string,
    readonly sandbox: Sandbox,
    readonly client: Client,
  ) {}

  static async open(cli: string): Promise<BenchEnvironment> {
    mkdirSync(LOG_FOLDER, { recursive: true });
    const metricsPort = await freePort();
    const options = { cli, metricsPort, searchAttributes: true, dynamicConfig: SERVER_SETTINGS };
    const server = await startDevServer(options);
    try {
      const connection = await Connection.connect({ address: server.address });
      const sandbox = await startSandbox({ seedJobs: false, messagesPerHour: null });
      return new BenchEnvironment(server, `127.0.0.1:${metricsPort}`, sandbox, new Client({ connection }));
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  /** Starts the worker process of a subject and waits until it polls. @returns its process ID */
  async startWorker(subject: BenchSubject, env: NodeJS.ProcessEnv = {}): Promise<number> {
    const { name, program, taskQueue } = subject;
    const logFile = path.join(LOG_FOLDER, `${name}.log`);
    const log = openSync(logFile, 'w');
    const worker = spawn(process.execPath, program, {
      env: { ...this.workerEnv(), ...env },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    this.workers.push(worker);
    const timeoutAt = Date.now() + READY_LIMIT_MS;
    while (!(await listPollingWorkers(this.client, taskQueue))?.length) {
      if (hasEnded(worker) || Date.now() > timeoutAt) {
        throw new Error(`the worker of ${name} did not become ready; read the reason in ${logFile}`);
      }
      await sleep(100);
    }
    return worker.pid ?? NaN;
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

  /** Returns the number of heartbeats that the Temporal server received since its start. Heartbeats are billed, but not in a history. */
  heartbeats(): Promise<number> {
    const labels = { operation: 'RecordActivityTaskHeartbeat', service_name: 'frontend' };
    return readMetric(this.metrics, 'service_requests', labels);
  }

  /** Kills the workers and stops the sandbox and the Temporal server immediately. Requests in progress fail. */
  async close(): Promise<void> {
    const running = this.workers.filter((worker) => !hasEnded(worker));
    const ended = running.map((worker) => once(worker, 'exit'));
    for (const worker of running) worker.kill('SIGKILL');
    await Promise.all(ended);
    await this.sandbox.close();
    await this.client.connection.close();
    await this.server.stop();
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

/** Reads the current sum of a metric's series that have these labels, from the process at `HOST:PORT`. */
export async function readMetric(
  address: string,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number> {
  await sleep(METRICS_DELAY_MS);
  const series = (await scrape(address)).filter(
    (each) =>
      each.name === name && Object.entries(labels).every(([label, text]) => each.labels[label] === text),
  );
  return series.reduce((sum, { value }) => sum + value, 0);
}
