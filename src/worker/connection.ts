import { setTimeout as sleep } from 'node:timers/promises';
import { type Logger, NativeConnection, Runtime } from '@temporalio/worker';
import { histogramBuckets, type LabelsOf, recordMetric } from '../contract/metrics';
import { formatDuration } from '../contract/duration';
import type { TemporalConfig } from '../temporal/connection-config';
import { ensureSearchAttributes } from '../temporal/search-attributes';
import { connectionError } from '../temporal/server-error';
import { explainListenFailure, formatListenAddress, type Listener, type LogLevelName } from './variables';

/** The error text of the Rust core when its metrics server can't listen (SDK 1.24, measured). */
const EXPORTER_FAILED = /prometheus/i;

export type SdkRuntime = ReturnType<typeof installRuntime>;

/**
 * The SDK's runtime, without its signal handlers. The SDK drops it, and closes the metrics port, whenever a connection fails; the
 * next attempt makes a new one, and may find the port taken.
 *
 * @param infoLabels the labels of the metric `worker_info`
 * @throws ConfigurationError when it can't listen at an address that was chosen
 */
export function installRuntime(
  metrics: Listener,
  level: LogLevelName,
  infoLabels: LabelsOf<'workerInfo'>,
  logger: Logger,
) {
  const core = level === 'debug' || level === 'trace' ? 'DEBUG' : 'WARN';
  const logging = { filter: { core, other: 'ERROR' }, forward: {} } as const;
  let bindAddress = metrics === 'off' ? undefined : formatListenAddress(metrics);
  let isInstalled = false;
  const install = (): void => {
    const prometheus = bindAddress && { bindAddress, histogramBucketOverrides: histogramBuckets() };
    const telemetryOptions = { logging, ...(prometheus && { metrics: { prometheus } }) };
    try {
      Runtime.install({ logger, shutdownSignals: [], telemetryOptions });
      isInstalled = true;
    } catch (error) {
      if (metrics === 'off' || !EXPORTER_FAILED.test(String(error))) throw error;
      logger.warn(`no metrics: ${explainListenFailure('FOLLOW_UP_METRICS_ADDRESS', metrics, error)}`);
      bindAddress = undefined;
      install();
    }
  };
  install();
  const connect = async (options: TemporalConfig['connection']): Promise<NativeConnection> => {
    if (!isInstalled) install();
    isInstalled = false;
    const connection = await NativeConnection.connect(options);
    isInstalled = true;
    // Only now: an earlier runtime is gone with its metrics.
    recordMetric(Runtime.instance().metricMeter, 'workerInfo', 1, infoLabels);
    return connection;
  };
  return { connect, metricsAddress: bindAddress };
}

const NAMESPACE_LIMIT_MS = 10_000;

/** For a readable log. */
const MAX_RETRY_WAIT_MS = 10_000;

/**
 * A connection to a Temporal server that has the namespace and the search attributes. It waits for each of these without a
 * limit, because containers start in any order.
 *
 * @param setNotReady gets the reason for each wait
 * @throws FollowUpError when waiting can't help, and the reason of `stop` when it is aborted
 */
export async function connectToTemporal(
  config: TemporalConfig,
  runtime: SdkRuntime,
  stop: AbortSignal,
  setNotReady: (reason: string) => void,
  logger: Logger,
): Promise<NativeConnection> {
  const { namespace } = config;
  let connection: NativeConnection | undefined;
  const attempt = async () => {
    connection ??= await runtime.connect(config.connection);
    await describeNamespace(connection, namespace, NAMESPACE_LIMIT_MS);
    const registered = await ensureSearchAttributes(connection, namespace);
    if (registered.length > 0)
      logger.info(`search attributes registered: ${registered.join(', ')}`, { namespace });
    return connection;
  };
  const connecting = `connecting to Temporal at ${config.address}`;
  setNotReady(connecting);
  logger.info(connecting);
  const aborted = new Promise<never>((_, reject) => {
    stop.addEventListener('abort', reject);
  });
  for (let waitMs = 1_000; ; waitMs = Math.min(2 * waitMs, MAX_RETRY_WAIT_MS)) {
    stop.throwIfAborted();
    try {
      return await Promise.race([attempt(), aborted]);
    } catch (error) {
      stop.throwIfAborted();
      const failure = connectionError(error, config);
      if (failure.code !== 'UNREACHABLE' && failure.code !== 'NAMESPACE_NOT_SET_UP') throw failure;
      setNotReady(failure.message);
      logger.warn(`waiting for Temporal (next try in ${formatDuration(waitMs)}): ${failure.message}`);
    }
    // Aborted, it rejects with an AbortError; the next round throws the signal's own reason.
    await sleep(waitMs, undefined, { signal: stop }).catch(() => undefined);
  }
}

/** Whether the server is up, has the namespace, and lets this process in. @throws ServiceError within `limitMs` */
export function describeNamespace(connection: NativeConnection, namespace: string, limitMs: number) {
  const request = () => connection.workflowService.describeNamespace({ namespace });
  return connection.withDeadline(Date.now() + limitMs, request);
}
