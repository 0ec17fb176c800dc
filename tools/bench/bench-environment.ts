import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { listPollingWorkers } from '../../src/temporal/sdk-internals';
import { type DevServer, startDevServer, stripTemporalEnv } from '../lib/dev-server';
import getPort from 'get-port';
import { type Sandbox, startSandbox } from '../../sandbox';
import { scrape } from '../lib/scrape';
import type { BenchSubject } from './subjects';

const LOG_FOLDER = path.resolve(__dirname, '../../.cache/bench');

/**
 * The server hands timers and retries out up to a second late, to take them in bunches. With a twentieth of that, sixty
 * polls take seconds instead of minutes; it changes the CPU time of a poll by less than other programs do (measured).
 * So short bunches are many, and the server's limit of 20 of them a second would hold timers of 100 ms up for as long as
 * 23 s, with half of the machine idle (measured).
 */
const SERVER_SETTINGS = {
  'history.timerProcessorMaxTimeShift': '50ms',
  'history.timerProcessorMaxPollRPS': 1_000,
  'history.timerProcessorMaxPollHostRPS': 1_000,
  // As in production: the dev server asks its database for the names of search attributes at each use.
  'system.forceSearchAttributesCacheRefreshOnRead': false,
};

/** A heap that leaves room in a container of 1 GiB (`deploy/kubernetes`); the worker sizes its cache by it. */
export const IN_CONTAINER = { NODE_OPTIONS: '--max-old-space-size=768' };

/** A worker that bundles its workflows takes some five seconds, and on a busy machine several times that. */
const READY_LIMIT_MS = 90_000;

/** Server and worker bring their metrics up to date once a second. */
const METRICS_DELAY_MS = 1_500;

/** Where everything is measured: a Temporal server of its own, the sandbox in this process, worker processes. */
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
    const metricsPort = await getPort();
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

  /** Starts the worker process of a subject and waits until it polls. @returns its process id */
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
    const giveUpAt = Date.now() + READY_LIMIT_MS;
    while ((await listPollingWorkers(this.client, taskQueue)).length === 0) {
      if (hasEnded(worker) || Date.now() > giveUpAt) {
        throw new Error(`the worker of ${name} does not work; it logs to ${logFile}`);
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

  /** Heartbeats that have reached the server since its start: billed, and in no history. */
  heartbeats(): Promise<number> {
    const labels = { operation: 'RecordActivityTaskHeartbeat', service_name: 'frontend' };
    return readMetric(this.metrics, 'service_requests', labels);
  }

  /** Ends everything that was started, whatever state it is in; what is under way is given up. */
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

/** The sum of the series of a metric that have these labels, at `HOST:PORT`, as it is now. */
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
