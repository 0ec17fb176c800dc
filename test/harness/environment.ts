import { Client, type ConnectionLike } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import { DefaultLogger, NativeConnection, Runtime } from '@temporalio/worker';
import { keyFromText } from '../../src/agent-api/api-key';
import { createAgentApi } from '../../src/agent-api/client';
import { startDevServer } from '../../tools/lib/dev-server';
import { startSandbox } from '../../sandbox';
import { connectClient } from '../../src/entries/client';
import { FollowUpPlugin, type NotifyOptions } from '../../src/entries/plugin';
import { FollowUpWorkers } from '../../src/worker/workers';
import type { TaskQueues } from '../../src/entries/plugin';
import { FollowUpTestClient, newTaskQueues } from './follow-up-under-test';
import { DYNAMIC_CONFIG, temporal } from './temporal';

// Failures of follow-ups are what many tests are about; only what breaks the worker itself is news.
Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: 'ERROR', forward: {} } },
});

export interface EnvironmentOptions {
  /** The limit of one HTTP exchange. @default 2000 */
  readonly httpTimeoutMs?: number;
  /** The Temporal server. @default the one that all test files share */
  readonly address?: string;
  /** The task queues, on which follow-ups may already wait for a worker. @default new ones */
  readonly taskQueues?: TaskQueues;
  /** A server of its own with these settings, on top of those of the shared one. */
  readonly dynamicConfig?: Readonly<Record<string, string | number | boolean>>;
  /** Where the worker tells ends. @default nowhere */
  readonly notify?: NotifyOptions;
  /** The workflow bundle. @default the one that is made once for a test run */
  readonly bundlePath?: string;
  /** That of workers and client, as a team of its own has one. @default the SDK's own */
  readonly dataConverter?: DataConverter;
  /**
   * Follow-ups have the default times, and the server's clock skips all of their waits. While an activity runs or a request is
   * held, nothing is skipped.
   *
   * @default false: the clock is everybody's, and the times are short
   */
  readonly skipsTime?: boolean;
}

/** A sandbox, the three workers of a worker process with queues of their own, and a client, on the shared server. */
export class Environment extends FollowUpTestClient {
  private constructor(
    readonly close: () => Promise<void>,
    ...caller: ConstructorParameters<typeof FollowUpTestClient>
  ) {
    super(...caller);
  }

  static async open({
    httpTimeoutMs: timeoutMs = 2_000,
    bundlePath: codePath = temporal().bundlePath,
    dataConverter = {},
    skipsTime = false,
    taskQueues = newTaskQueues(),
    notify,
    ...options
  }: EnvironmentOptions = {}): Promise<Environment> {
    const dynamicConfig = { ...DYNAMIC_CONFIG, ...options.dynamicConfig };
    const own =
      options.dynamicConfig &&
      (await startDevServer({ cli: temporal().cli, searchAttributes: true, dynamicConfig }));
    const address = own?.address ?? options.address ?? temporal().address;
    const sandbox = await startSandbox({ seedJobs: false, turnMs: 1_500 });
    const apiKey = keyFromText(sandbox.apiKey);
    const agentApi = createAgentApi({ baseUrl: sandbox.baseUrl, apiKey, timeoutMs });
    // The SDK's own connection lets a retry that is due after its end break the process.
    const connected = await connectClient({ env: { TEMPORAL_ADDRESS: address } });
    const native = await NativeConnection.connect({ address });
    const stop = new AbortController();
    const workers = await FollowUpWorkers.create(
      native,
      { temporal: { namespace: 'default' }, taskQueues, dataConverter },
      { workflowBundle: { codePath } },
      new FollowUpPlugin({ agentApi, taskQueues, notify }),
    );
    // Loads what undici loads at its first use: jest forbids that between the steps of concurrent tests.
    const nobody = { projectId: 'warm-up', jobId: 'nobody' };
    await agentApi.getJob(nobody);
    await agentApi.sendMessage({ ...nobody, prompt: 'nothing' });
    const running = workers.run(stop.signal);
    const close = async () => {
      stop.abort();
      // What a test has left held would keep its worker from draining.
      await sandbox.close();
      await running;
      for (const each of [agentApi, native, connected]) await each.close();
      await own?.stop();
    };
    const { connection: direct } = connected.client;
    const connection = skipsTime ? skippingTime(direct) : direct;
    const client = new Client({ connection, dataConverter });
    return new Environment(close, sandbox, client, taskQueues, skipsTime ? {} : undefined);
  }
}

type Service = ConnectionLike['workflowService'];

/**
 * A connection whose starts ask for a clock of their own: the server (1.32) sets it to the workflow's next timer, retry or
 * time-out whenever no task and no activity of it is under way. The SDK's client (1.24) has no option for it.
 */
function skippingTime<Connection extends ConnectionLike>(connection: Connection): Connection {
  const service = connection.workflowService;
  const start = (request: Parameters<Service['startWorkflowExecution']>[0]) =>
    service.startWorkflowExecution({ ...request, timeSkippingConfig: { enabled: true } });
  const value = Object.create(service, { startWorkflowExecution: { value: start } }) as Service;
  return Object.create(connection, { workflowService: { value } }) as Connection;
}
