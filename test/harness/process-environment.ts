import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { connectClient } from '../../src/entries/client';
import { type SandboxOptions, startSandbox } from '../../sandbox';
import { FollowUpTestClient, newTaskQueues, taskQueueVariables } from './follow-up-under-test';
import { temporal } from './temporal';
import { type NodeCommand, WorkerProcess } from './worker-process';

/**
 * Options for follow-ups whose worker dies. The Temporal server retries the dead worker's single reads after 15 s without a
 * heartbeat and its workflow tasks after 10 s. A send times out after twice the HTTP timeout plus 15 s, and a `pollJob` attempt
 * after the HTTP timeout plus 15 s. A new worker is ready after about 3 s, or 10 s on a busy machine.
 */
export const WORKER_LOSS_OPTIONS = {
  whenActive: 'send',
  deadline: '10m',
  polling: { initial: '500ms', growth: 0, maximum: '500ms', jitter: 0 },
  reconcileTimeout: '3s',
  prLinkTimeout: '1s',
  maxStaleness: '3s',
} as const;

/** The environment of a worker that counts the running workflows every second instead of every minute. */
export const COUNT_EVERY_SECOND = {
  NODE_OPTIONS: `--import=${pathToFileURL(path.join(__dirname, 'count-every-second.mjs')).href}`,
};

export interface ProcessEnvironmentOptions {
  readonly sandbox?: SandboxOptions;
  /** Variables of each worker process, in addition to those for the Temporal server, the sandbox and the task queues. */
  readonly env?: NodeJS.ProcessEnv;
  /** The address of the Temporal server. @default the server that all test files share */
  readonly address?: string;
}

/** A sandbox, separate task queues and a client. The workers are processes that the test starts and kills. */
export class ProcessEnvironment extends FollowUpTestClient {
  private readonly workers: WorkerProcess[] = [];

  private constructor(
    private readonly disconnect: () => Promise<void>,
    private readonly env: NodeJS.ProcessEnv,
    ...caller: ConstructorParameters<typeof FollowUpTestClient>
  ) {
    super(...caller);
  }

  /**
   * Opens an environment for the duration of a test. At the end, and also if the test fails, all workers and the sandbox are
   * stopped.
   */
  static async with(
    options: ProcessEnvironmentOptions,
    test: (environment: ProcessEnvironment) => Promise<void>,
  ): Promise<void> {
    const environment = await ProcessEnvironment.open(options);
    await test(environment).finally(() => environment.close());
  }

  /**
   * Starts a worker process of this environment.
   *
   * @param env variables in addition to the environment's variables
   * @param node the command of Node
   * @param program the file that Node runs. @default the compiled worker
   */
  async spawnWorker(
    env: NodeJS.ProcessEnv = {},
    node?: NodeCommand,
    program?: string,
  ): Promise<WorkerProcess> {
    const worker = await WorkerProcess.start({ ...this.env, ...env }, program, node);
    this.workers.push(worker);
    return worker;
  }

  /** Starts a worker process as {@link spawnWorker} does, and waits until the worker logs that it is ready. */
  async startWorker(...worker: Parameters<ProcessEnvironment['spawnWorker']>): Promise<WorkerProcess> {
    const started = await this.spawnWorker(...worker);
    await started.waitForLog(/^ready$/);
    return started;
  }

  static async open(options: ProcessEnvironmentOptions): Promise<ProcessEnvironment> {
    const address = options.address ?? temporal().address;
    const [sandbox, { client, close }] = await Promise.all([
      startSandbox({ seedJobs: false, turnMs: 1_500, ...options.sandbox }),
      // With the SDK's own connection (1.24), a retry that is due after the connection was closed ends the process.
      connectClient({ env: { TEMPORAL_ADDRESS: address } }),
    ]);
    const taskQueues = newTaskQueues();
    const env = {
      TEMPORAL_ADDRESS: address,
      AGENT_API_BASE_URL: sandbox.baseUrl,
      AGENT_API_KEY: sandbox.apiKey,
      AGENT_API_TIMEOUT: '10s',
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
