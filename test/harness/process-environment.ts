import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { connectClient } from '../../src/entries/client';
import { type SandboxOptions, startSandbox } from '../../sandbox';
import { FollowUpTestClient, newTaskQueues, taskQueueVariables } from './follow-up-under-test';
import { temporal } from './temporal';
import { WorkerProcess } from './worker-process';

/**
 * Times for follow-ups whose worker dies: its reads are given up after 15 s without a heartbeat, its workflow tasks after
 * 10 s, its send after the HTTP time limit and 15 s, and a new worker is there after some 3 s, or 10 s on a busy machine.
 */
export const WORKER_LOSS_OPTIONS = {
  whenActive: 'send',
  deadline: '10m',
  polling: { initial: '500ms', growth: 0, maximum: '500ms', jitter: 0 },
  reconcileTimeout: '3s',
  prLinkTimeout: '1s',
  maxStaleness: '3s',
} as const;

/** For a worker that asks the server every second, and not every minute, what is open. */
export const COUNT_EVERY_SECOND = {
  NODE_OPTIONS: `--import=${pathToFileURL(path.join(__dirname, 'count-every-second.mjs')).href}`,
};

export interface ProcessEnvironmentOptions {
  readonly sandbox?: SandboxOptions;
  /** The variables of each worker process, on top of those that say where server, sandbox and queues are. */
  readonly env?: NodeJS.ProcessEnv;
  /** The Temporal server. @default the one that all test files share */
  readonly address?: string;
}

/** A sandbox, task queues of its own and a client; the workers are processes that the test starts and kills. */
export class ProcessEnvironment extends FollowUpTestClient {
  private readonly workers: WorkerProcess[] = [];

  private constructor(
    private readonly disconnect: () => Promise<void>,
    private readonly env: NodeJS.ProcessEnv,
    ...caller: ConstructorParameters<typeof FollowUpTestClient>
  ) {
    super(...caller);
  }

  /** Opens one for the length of a test; ends everything that was started in it, also when the test fails. */
  static async with(
    options: ProcessEnvironmentOptions,
    test: (environment: ProcessEnvironment) => Promise<void>,
  ): Promise<void> {
    const environment = await ProcessEnvironment.open(options);
    await test(environment).finally(() => environment.close());
  }

  /** Starts a worker of this environment; `env` is added to that of the environment. */
  async spawnWorker(env: NodeJS.ProcessEnv = {}): Promise<WorkerProcess> {
    const worker = await WorkerProcess.start({ ...this.env, ...env });
    this.workers.push(worker);
    return worker;
  }

  /** Starts a worker as {@link spawnWorker} does, and waits until it polls. */
  async startWorker(env?: NodeJS.ProcessEnv): Promise<WorkerProcess> {
    const worker = await this.spawnWorker(env);
    await worker.waitForLog(/^ready$/);
    return worker;
  }

  static async open(options: ProcessEnvironmentOptions): Promise<ProcessEnvironment> {
    const address = options.address ?? temporal().address;
    const [sandbox, { client, close }] = await Promise.all([
      startSandbox({ seedJobs: false, turnMs: 1_500, ...options.sandbox }),
      // The SDK's own connection lets a retry that is due after its end break the process.
      connectClient({ env: { TEMPORAL_ADDRESS: address } }),
    ]);
    const taskQueues = newTaskQueues();
    const env = {
      TEMPORAL_ADDRESS: address,
      AGENT_API_BASE_URL: sandbox.baseUrl,
      AGENT_API_KEY: sandbox.apiKey,
      AGENT_API_TIMEOUT: '2s',
      ...taskQueueVariables(taskQueues),
      ...options.env,
    };
    return new ProcessEnvironment(close, env, sandbox, client, taskQueues);
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.stop()));
    await this.sandbox.close();
    await this.disconnect();
  }
}
