import { Client, type ConnectionLike } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import { SimplePlugin } from '@temporalio/plugin';
import { DefaultLogger, NativeConnection, Runtime } from '@temporalio/worker';
import { keyFromText } from '../../src/agent-api/secret-source';
import { createAgentApi } from '../../src/agent-api/client';
import { startDevServer } from '../../tools/lib/dev-server';
import { startSandbox } from '../../sandbox';
import { connectClient } from '../../src/entries/client';
import { FollowUpPlugin, type NotifyOptions } from '../../src/entries/plugin';
import { FollowUpWorkers } from '../../src/worker/workers';
import type { TaskQueues } from '../../src/entries/plugin';
import { FollowUpTestClient, newTaskQueues } from './follow-up-under-test';
import { DYNAMIC_CONFIG, temporal } from './temporal';

// Many tests make follow-ups fail on purpose, so the log has only errors of the worker itself.
Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: 'ERROR', forward: {} } },
});

export interface EnvironmentOptions {
  /** The timeout of one HTTP request, in milliseconds. @default 60000 */
  readonly httpTimeoutMs?: number;
  /** The address of the Temporal server. @default the server that all test files share */
  readonly address?: string;
  /** The task queues of the workers. Follow-ups may already wait on these queues. @default new task queues */
  readonly taskQueues?: TaskQueues;
  /** Starts a separate Temporal server with these settings, in addition to the settings of the shared server. */
  readonly dynamicConfig?: Readonly<Record<string, string | number | boolean>>;
  /** The webhook to which the workers send notifications. @default no webhook */
  readonly notify?: NotifyOptions;
  /** The file of the workflow bundle. @default the bundle that is made once for a test run */
  readonly bundlePath?: string;
  /** The data converter of the workers and the client. @default the SDK's data converter */
  readonly dataConverter?: DataConverter;
  /**
   * If true, follow-ups have the default durations, and the Temporal server skips all of their waits. The server skips no time
   * while an activity runs, for example during a held request. If false, follow-ups use real time and short durations.
   *
   * @default false
   */
  readonly skipsTime?: boolean;
}

/**
 * A sandbox, the three workers of a worker process on separate task queues, and a client, by default on the shared Temporal
 * server.
 */
export class Environment extends FollowUpTestClient {
  private constructor(
    readonly close: () => Promise<void>,
    ...caller: ConstructorParameters<typeof FollowUpTestClient>
  ) {
    super(...caller);
  }

  static async open({
    httpTimeoutMs: timeoutMs = 60_000,
    bundlePath = temporal().bundlePath,
    dataConverter = {},
    skipsTime = false,
    taskQueues = newTaskQueues(),
    notify,
    ...options
  }: EnvironmentOptions = {}): Promise<Environment> {
    const dynamicConfig = { ...DYNAMIC_CONFIG, ...options.dynamicConfig };
    const separateServer =
      options.dynamicConfig &&
      (await startDevServer({ cli: temporal().cli, searchAttributes: true, dynamicConfig }));
    const address = separateServer?.address ?? options.address ?? temporal().address;
    const sandbox = await startSandbox({ seedJobs: false, turnMs: 1_500 });
    const apiKey = keyFromText(sandbox.apiKey);
    const agentApi = createAgentApi({ baseUrl: sandbox.baseUrl, apiKey, timeoutMs });
    // With the SDK's own connection (1.24), a retry that is due after the connection was closed ends the process.
    const connected = await connectClient({ env: { TEMPORAL_ADDRESS: address } });
    const native = await NativeConnection.connect({ address });
    const stop = new AbortController();
    const plugin = new SimplePlugin({ name: 'test', dataConverter });
    const workers = await FollowUpWorkers.create(
      native,
      { temporal: { namespace: 'default' }, taskQueues, plugins: [plugin] },
      bundlePath,
      new FollowUpPlugin({ agentApi, taskQueues, notify }),
    );
    // undici loads modules at its first requests, and Jest forbids this between the steps of concurrent tests.
    const missingJob = { projectId: 'warm-up', jobId: 'missing' };
    await agentApi.getJob(missingJob);
    await agentApi.sendMessage({ ...missingJob, prompt: 'nothing' });
    const running = workers.run(stop.signal);
    const close = async () => {
      stop.abort();
      // A request that a test has not released would keep the worker from shutting down.
      await sandbox.close();
      await running;
      for (const each of [agentApi, native, connected]) await each.close();
      await separateServer?.stop();
    };
    const { connection: direct } = connected.client;
    const connection = skipsTime ? skippingTime(direct) : direct;
    const client = new Client({ connection, dataConverter });
    return new Environment(close, sandbox, client, taskQueues, skipsTime ? {} : undefined);
  }
}

type Service = ConnectionLike['workflowService'];

/**
 * Returns a connection whose starts request a separate clock for each workflow. Temporal server 1.32 moves the clock to the
 * workflow's next timer, retry or timeout whenever no task and no activity of the workflow runs. The SDK's client (1.24) has no
 * option for this clock.
 */
function skippingTime<Connection extends ConnectionLike>(connection: Connection): Connection {
  const service = connection.workflowService;
  const start = (request: Parameters<Service['startWorkflowExecution']>[0]) =>
    service.startWorkflowExecution({ ...request, timeSkippingConfig: { enabled: true } });
  const value = Object.create(service, { startWorkflowExecution: { value: start } }) as Service;
  return Object.create(connection, { workflowService: { value } }) as Connection;
}
