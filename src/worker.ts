import './node-version';
import { constants } from 'node:os';
import { type Logger, Runtime } from '@temporalio/worker';
import { createAgentApi } from './agent-api/client';
import { formatDuration } from './contract/duration';
import { FollowUpError } from './contract/follow-up-error';
import { ConfigurationError } from './temporal/connection-config';
import { disposePlugins } from './temporal/plugins';
import { findPrebuiltBundle } from './worker/bundle';
import { handleArguments, workerVersion } from './worker/command-line';
import { loadAll, configurationText, loadConfig, type LoadedConfig } from './worker/config';
import { startHealthServer } from './worker/health';
import { createLogger } from './worker/logging';
import { FollowUpPlugin, shutdownLimitMs } from './worker/plugin';
import { connectToTemporal, installRuntime } from './worker/connection';
import { connectionCheck, keyCheck, type ReadinessCheck, runTogether } from './worker/readiness';
import { SecretFileReports } from './worker/secret-file-reports';
import { FollowUpWorkers } from './worker/workers';

/** The exit code 2 means that a restart does not help until the configuration is changed. */
const EXIT_CODE = { drained: 0, failed: 1, misconfigured: 2 } as const;

/** A second signal within this time is ignored, because npm forwards a Ctrl-C that the worker has received as well. */
const SIGNAL_DEBOUNCE_MS = 1_000;

async function main(): Promise<number> {
  // If the reader of the output exits (EPIPE), the worker continues.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const immediateOutput = handleArguments(process.argv.slice(2), workerVersion());
  if (immediateOutput !== undefined) {
    (immediateOutput.isError ? process.stderr : process.stdout).write(immediateOutput.output);
    return immediateOutput.isError ? EXIT_CODE.misconfigured : EXIT_CODE.drained;
  }
  const secretFiles = new SecretFileReports();
  const loaded = await loadConfig(process.env, secretFiles.report);
  const logger = createLogger(loaded.config.logLevel, loaded.redactor);
  secretFiles.logger = logger;
  const controller = new AbortController();
  const { signal: stop } = controller;
  let endedCode: number = EXIT_CODE.drained;
  // Node would end the process at once, and the delivery of a POST in progress would be unknown. Node's report would not be
  // redacted.
  process.on('uncaughtException', (error) => {
    logger.error('the worker exits because of a bug (uncaught exception)', { error });
    endedCode = EXIT_CODE.failed;
    controller.abort(error);
  });
  stopAtSignals(controller, logger);
  try {
    await runWorkers(loaded, logger, stop, secretFiles);
    logger.info('the worker has ended');
    return endedCode;
  } catch (error) {
    // The worker was stopped while it was waiting for the Temporal server, so there was nothing to drain.
    return stop.aborted && error === stop.reason
      ? endedCode
      : reportExit(error, logger, loaded.redactor.redact);
  }
}

async function runWorkers(
  loaded: LoadedConfig,
  logger: Logger,
  stop: AbortSignal,
  secretFiles: SecretFileReports,
): Promise<void> {
  const { config, loggableConfig, redactor, warnings } = loaded;
  const { agentApi, taskQueues, temporal } = config;
  const version = workerVersion();
  logger.info('the worker starts', { version, ...loggableConfig });
  for (const warning of warnings) logger.warn(warning);
  const bundlePath = findPrebuiltBundle();
  let checkReadiness: ReadinessCheck = () => Promise.resolve(['the process is starting']);
  const setNotReady = (reason: string) => void (checkReadiness = () => Promise.resolve([reason]));
  // The reasons are redacted, because every client that reaches the port can read them.
  const reasons = async () => (await checkReadiness()).map(redactor.redact);
  const [health, runtime] = await loadAll([
    () => startHealthServer(config.health, version, reasons, logger),
    () => installRuntime(config.metrics, config.logLevel, { version, namespace: temporal.namespace }, logger),
  ]);

  logger.info('listening', { health: health.address ?? 'off', metrics: runtime.metricsAddress ?? 'off' });
  const connection = await connectToTemporal(temporal, runtime, stop, setNotReady, logger);
  setNotReady('the workers are starting');
  secretFiles.countWith(Runtime.instance().metricMeter, temporal.namespace);
  const api = createAgentApi(agentApi);
  const plugin = new FollowUpPlugin({ agentApi: api, taskQueues, notify: config.notify });
  const workers = await FollowUpWorkers.create(connection, config, bundlePath, plugin);
  const apiKeyProblems = keyCheck(api, logger);
  const workerProblems = () => Promise.resolve(workers.notRunningReasons());
  checkReadiness = runTogether(workerProblems, connectionCheck(connection, temporal), apiKeyProblems);
  stop.addEventListener('abort', () => {
    setNotReady('the worker is shutting down');
    const limit = formatDuration(shutdownLimitMs(agentApi.timeoutMs));
    logger.info(`draining; requests in progress may finish within ${limit}`);
  });

  try {
    await workers.run(stop, () => {
      logger.info('ready');
      void apiKeyProblems();
    });
  } finally {
    // A part that can't be closed must not hide the error of a worker. The process exits in any case.
    const disposing = disposePlugins(config.plugins);
    await Promise.allSettled([disposing, api.close(), connection.close(), health.close()]);
  }
}

/**
 * Reports why the worker exits, and returns the exit code. A wrong configuration goes to stderr. Any other reason goes to the
 * log, or to stderr before the log exists. In the log, a bug has its stack trace.
 */
function reportExit(error: unknown, logger?: Logger, redact = (text: string) => text): number {
  if (error instanceof ConfigurationError) {
    const problems = error.problems.map(({ field, text }) => ({ field, text: redact(text) }));
    process.stderr.write(configurationText(problems));
    return EXIT_CODE.misconfigured;
  }
  if (logger === undefined) process.stderr.write(`the worker cannot start: ${String(error)}\n`);
  else if (error instanceof FollowUpError) logger.error(`the worker cannot start: ${error.message}`);
  else logger.error('the worker exits because of an unexpected error', { error });
  return EXIT_CODE.failed;
}

/**
 * Aborts the controller at the first SIGTERM or SIGINT. A signal that arrives more than one second after the abort ends the
 * process immediately, with the exit code of a shell (143 or 130).
 */
function stopAtSignals(controller: AbortController, logger: Logger): void {
  let abortedAt = 0;
  controller.signal.addEventListener('abort', () => (abortedAt = performance.now()));
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (!controller.signal.aborted) {
        logger.info(`${signal}: shutting down; another signal after one second ends the process immediately`);
        controller.abort(new Error(`${signal} received`));
      } else if (performance.now() - abortedAt > SIGNAL_DEBOUNCE_MS) {
        logger.warn(
          `${signal} again: exiting immediately; the delivery of a POST in progress is then unknown`,
        );
        process.exit(128 + constants.signals[signal]);
      }
    });
  }
}

void main()
  .catch((error: unknown) => reportExit(error))
  .then((code) => process.exit(code));
