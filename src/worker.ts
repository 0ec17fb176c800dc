import type { Logger } from '@temporalio/worker';
import { createAgentApi } from './agent-api/client';
import { formatDuration } from './core/units';
import { workflowCode } from './worker/bundle';
import { checkKey, keyCheck } from './worker/check-key';
import { commandLine } from './worker/command-line';
import { bothConfigured, describeConfig, loadConfig, type LoadedConfig } from './worker/config';
import { endOnBug, EXIT, exitCode, onShutdownSignals } from './worker/exit';
import { startHealthServer } from './worker/health';
import { createLogger } from './worker/logging';
import { connectionCheck, connectToTemporal, Readiness } from './worker/temporal';
import { SdkRuntime } from './worker/runtime';
import { FollowUpPlugin, shutdownLimitMs } from './worker/plugin';
import { workerVersion } from './worker/version';
import { defaultInProcessPolls, FollowUpWorkers } from './worker/workers';

/** The worker process: checks its configuration, waits for Temporal, works until a signal comes, drains, and ends. */
async function main(): Promise<number> {
  const asked = commandLine(process.argv.slice(2), workerVersion());
  if (asked?.what === 'print') {
    (asked.isError ? process.stderr : process.stdout).write(asked.output);
    return asked.isError ? EXIT.misconfigured : EXIT.drained;
  }
  const loaded = await loadConfig(process.env);
  if (asked !== undefined) {
    const { isGood, words } = await checkKey(createAgentApi(loaded.config.agentApi), asked.address);
    process.stdout.write(`${loaded.redactor.text(words)}\n`);
    return isGood ? EXIT.drained : EXIT.failed;
  }
  const logger = createLogger(loaded.config.logLevel, loaded.redactor);
  endOnBug(logger);
  const stop = onShutdownSignals(logger);
  try {
    await work(loaded, logger, stop);
    logger.info('the worker has ended');
    return EXIT.drained;
  } catch (error) {
    // Stopped while it was still waiting for Temporal: there was nothing to drain.
    return stop.aborted && error === stop.reason ? EXIT.drained : exitCode(error, logger);
  }
}

async function work(loaded: LoadedConfig, logger: Logger, stop: AbortSignal): Promise<void> {
  const { config, redactor, warnings } = loaded;
  const { agentApi, taskQueues, temporal } = config;
  const inProcessPolls = config.inProcessPolls ?? defaultInProcessPolls();
  const version = workerVersion();
  logger.info('the worker starts', { version, ...describeConfig(config) });
  for (const warning of warnings) logger.warn(warning);
  const { payloadConverterPath, failureConverterPath } = config.dataConverter ?? {};
  // Converters, unlike codecs, run inside the workflows, so the SDK must bundle them: the prebuilt bundle has none.
  const ownConverter = payloadConverterPath ?? failureConverterPath;
  const code =
    ownConverter === undefined ? workflowCode() : { workflowsPath: require.resolve('./workflows') };
  const readiness = new Readiness(redactor);
  const [health, runtime] = await bothConfigured(
    startHealthServer(config.health, version, readiness.check, logger),
    SdkRuntime.install(config.metrics, config.logLevel, logger),
  );

  logger.info('listening', { health: health.address ?? 'off', metrics: runtime.servesMetricsAt ?? 'off' });
  const connection = await connectToTemporal(temporal, runtime, { stop, readiness, logger });
  runtime.showVersion(version);
  readiness.notReady('the workers are starting');
  const api = createAgentApi(agentApi);
  const plugin = new FollowUpPlugin({
    agentApi: api,
    taskQueues,
    inProcessPolls,
    // Done by `connectToTemporal`, which waits for them.
    ensureSearchAttributes: false,
  });
  const workers = await FollowUpWorkers.create(connection, { ...config, inProcessPolls }, code, plugin);
  const reachable = connectionCheck(connection, temporal);
  const keyIsGood = keyCheck(api, (reason) => {
    logger.warn(reason);
  });
  readiness.readyUnless(async () => [
    ...workers.notRunning(),
    ...(await reachable()),
    ...(await keyIsGood()),
  ]);
  stop.addEventListener('abort', () => {
    readiness.notReady('the worker is shutting down');
    const limit = formatDuration(shutdownLimitMs(agentApi.timeoutMs));
    logger.info(
      `draining; requests in flight: ${workers.exchangesUnderWay()}; they may finish, within ${limit} at most`,
    );
  });

  const drained = workers.run(stop, (taskQueue, error) => {
    logger.error(`the worker of task queue ${taskQueue} failed; the others are drained`, { error });
  });
  logger.info('ready', {
    temporal: temporal.address,
    namespace: temporal.namespace,
    taskQueues: Object.values(taskQueues),
  });
  // Not only when somebody asks for readiness: the log is to tell it too.
  void keyIsGood();
  try {
    await drained;
  } finally {
    await api.close();
    await connection.close();
    await health.close();
  }
}

void main()
  .catch((error: unknown) => exitCode(error))
  .then((code) => process.exit(code));
