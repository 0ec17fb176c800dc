import { constants } from 'node:os';
import type { Logger } from '@temporalio/worker';
import { createAgentApi } from './agent-api/client';
import { formatDuration } from './contract/duration';
import { FollowUpError } from './contract/follow-up-error';
import { ConfigurationError } from './temporal/connection-config';
import { workflowCode } from './worker/bundle';
import { handleArguments, workerVersion } from './worker/command-line';
import { loadAll, configurationText, loadConfig, type LoadedConfig } from './worker/config';
import { connectionCheck, keyCheck, type ReadinessCheck, startHealthServer } from './worker/health';
import { createLogger } from './worker/logging';
import { FollowUpPlugin, shutdownLimitMs } from './worker/plugin';
import { connectToTemporal, installRuntime } from './worker/connection';
import { FollowUpWorkers } from './worker/workers';

/** The exit code 2 means that a restart does not help until the configuration is changed. */
const EXIT_CODE = { drained: 0, failed: 1, misconfigured: 2 } as const;

/** A second signal within this time is ignored, because npm forwards a Ctrl-C that the worker has received as well. */
const SIGNAL_DEBOUNCE_MS = 1_000;

async function main(): Promise<number> {
  const immediateOutput = handleArguments(process.argv.slice(2), workerVersion());
  if (immediateOutput !== undefined) {
    (immediateOutput.isError ? process.stderr : process.stdout).write(immediateOutput.output);
    return immediateOutput.isError ? EXIT_CODE.misconfigured : EXIT_CODE.drained;
  }
  const loaded = await loadConfig(process.env);
  const logger = createLogger(loaded.config.logLevel, loaded.redactor);
  // Node's own report would not be redacted.
  process.on('uncaughtException', (error) => {
    logger.error('the worker exits because of a bug (uncaught exception)', { error });
    process.exit(EXIT_CODE.failed);
  });
  const stop = onShutdownSignals(logger);
  try {
    await runWorkers(loaded, logger, stop);
    logger.info('the worker has ended');
    return EXIT_CODE.drained;
  } catch (error) {
    // The worker was stopped while it was waiting for the Temporal server, so there was nothing to drain.
    return stop.aborted && error === stop.reason ? EXIT_CODE.drained : exitCode(error, logger);
  }
}

async function runWorkers(loaded: LoadedConfig, logger: Logger, stop: AbortSignal): Promise<void> {
  const { config, loggableConfig, redactor, warnings } = loaded;
  const { agentApi, taskQueues, temporal } = config;
  const version = workerVersion();
  logger.info('the worker starts', { version, ...loggableConfig });
  for (const warning of warnings) logger.warn(warning);
  const { payloadConverterPath, failureConverterPath } = config.dataConverter ?? {};
  // The SDK must bundle the workflows with converters, because converters run inside workflows, unlike codecs.
  const code = payloadConverterPath || failureConverterPath ? {} : workflowCode();
  let checkReadiness: ReadinessCheck = () => Promise.resolve(['the process is starting']);
  const waitFor = (reason: string) => void (checkReadiness = () => Promise.resolve([reason]));
  // The reasons are redacted, because every client that reaches the port can read them.
  const reasons = async () => (await checkReadiness()).map(redactor.redact);
  const [health, runtime] = await loadAll([
    () => startHealthServer(config.health, version, reasons, logger),
    () => installRuntime(config.metrics, config.logLevel, { version, namespace: temporal.namespace }, logger),
  ]);

  logger.info('listening', { health: health.address ?? 'off', metrics: runtime.metricsAddress ?? 'off' });
  const connection = await connectToTemporal(temporal, runtime, stop, waitFor, logger);
  waitFor('the workers are starting');
  const api = createAgentApi(agentApi);
  const plugin = new FollowUpPlugin({ agentApi: api, taskQueues, notify: config.notify });
  const workers = await FollowUpWorkers.create(connection, config, code, plugin);
  const connectionProblems = connectionCheck(connection, temporal);
  const apiKeyProblems = keyCheck(api, logger);
  checkReadiness = async () => [
    ...workers.notRunningReasons(),
    ...(await connectionProblems()),
    ...(await apiKeyProblems()),
  ];
  stop.addEventListener('abort', () => {
    waitFor('the worker is shutting down');
    const limit = formatDuration(shutdownLimitMs(agentApi.timeoutMs));
    logger.info(`draining; requests in progress may finish within ${limit}`);
  });

  try {
    await workers.run(stop, () => {
      logger.info('ready');
      void apiKeyProblems();
    });
  } finally {
    await api.close();
    await connection.close();
    await health.close();
  }
}

/**
 * Reports why the worker exits: a wrong configuration on stderr, any other reason in the log (or on stderr before the log exists), and a
 * bug with its stack trace.
 */
function exitCode(error: unknown, logger?: Logger): number {
  if (error instanceof ConfigurationError) {
    process.stderr.write(configurationText(error.problems));
    return EXIT_CODE.misconfigured;
  }
  if (logger === undefined) process.stderr.write(`the worker cannot start: ${String(error)}\n`);
  else if (error instanceof FollowUpError) logger.error(`the worker cannot start: ${error.message}`);
  else logger.error('the worker exits because of an unexpected error', { error });
  return EXIT_CODE.failed;
}

/**
 * Returns a signal that the first SIGTERM or SIGINT aborts. A signal that arrives more than one second later ends the process
 * immediately, with the exit code of a shell (143 or 130).
 */
function onShutdownSignals(logger: Logger): AbortSignal {
  const controller = new AbortController();
  let firstAt = 0;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (!controller.signal.aborted) {
        firstAt = performance.now();
        logger.info(`${signal}: shutting down; another signal after one second ends the process immediately`);
        controller.abort(new Error(`${signal} received`));
      } else if (performance.now() - firstAt > SIGNAL_DEBOUNCE_MS) {
        logger.warn(
          `${signal} again: exiting immediately; the delivery of a POST in progress is then unknown`,
        );
        process.exit(128 + constants.signals[signal]);
      }
    });
  }
  return controller.signal;
}

void main()
  .catch((error: unknown) => exitCode(error))
  .then((code) => process.exit(code));
