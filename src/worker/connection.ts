import { setTimeout as sleep } from 'node:timers/promises';
import { type Logger, NativeConnection, Runtime } from '@temporalio/worker';
import { histogramBuckets, type LabelsOf, recordMetric } from '../contract/metrics';
import { formatDuration } from '../contract/duration';
import type { TemporalConfig } from '../temporal/connection-config';
import { isUnimplemented } from '../temporal/grpc-status';
import { isUnknownAttributesError, registerAndLogSearchAttributes } from '../temporal/search-attributes';
import { connectionError } from '../temporal/server-error';
import { checkServerVersion } from '../temporal/server-version';
import {
  ipv4Fallback,
  throwOrExplainListenFailure,
  formatListenAddress,
  type ListenSetting,
  type LogLevelName,
} from './variables';

/** Matches the error text of the Rust core if its metrics server can't listen (measured by test/worker/start.process.test.ts). */
const EXPORTER_FAILED = /prometheus/i;

export type SdkRuntime = ReturnType<typeof installRuntime>;

/**
 * Installs the SDK's runtime without its signal handlers. Whenever a connection fails, the SDK drops the runtime and closes the
 * metrics port. The next attempt installs a new runtime. By then, another program may use the port. The worker then runs without
 * metrics, or fails if an operator set the address.
 *
 * @param infoLabels the labels of the metric `worker_info`
 * @throws ConfigurationError if an operator set the metrics address, and the process can't listen at it
 */
export function installRuntime(
  metrics: ListenSetting,
  level: LogLevelName,
  infoLabels: LabelsOf<'workerInfo'>,
  logger: Logger,
) {
  const core = level === 'debug' || level === 'trace' ? 'DEBUG' : 'WARN';
  const logging = { filter: { core, other: 'ERROR' }, forward: {} } as const;
  let host = metrics === 'off' ? undefined : metrics.host;
  const address = () =>
    metrics === 'off' || host === undefined ? undefined : formatListenAddress({ host, port: metrics.port });
  let isInstalled = false;
  const install = (): void => {
    const bindAddress = address();
    const prometheus = bindAddress && { bindAddress, histogramBucketOverrides: histogramBuckets() };
    const telemetryOptions = { logging, ...(prometheus && { metrics: { prometheus } }) };
    try {
      Runtime.install({ logger, shutdownSignals: [], telemetryOptions });
      isInstalled = true;
    } catch (error) {
      if (metrics === 'off' || !EXPORTER_FAILED.test(String(error))) throw error;
      const otherHost = ipv4Fallback(host ?? '', error);
      if (otherHost === undefined)
        logger.warn(
          `metrics are off: ${throwOrExplainListenFailure('FOLLOW_UP_METRICS_ADDRESS', metrics, error)}`,
        );
      host = otherHost;
      install();
    }
  };
  install();
  const connect = async (options: TemporalConfig['connection']): Promise<NativeConnection> => {
    if (!isInstalled) install();
    isInstalled = false;
    const connection = await NativeConnection.connect(options);
    isInstalled = true;
    // The metric is recorded after the connection, because a runtime that the SDK dropped loses its metrics.
    recordMetric(Runtime.instance().metricMeter, 'workerInfo', 1, infoLabels);
    return connection;
  };
  return { connect, metricsAddress: address() };
}

const NAMESPACE_TIMEOUT_MS = 10_000;

/** The maximum wait between two attempts, so that the log shows regularly that the worker waits. */
const MAX_RETRY_WAIT_MS = 10_000;

/**
 * Connects to the Temporal server, and waits until the server responds. The function also waits while the server reports that the
 * namespace or a search attribute is missing. The wait has no timeout, because containers start in any order. A gateway may
 * reject calls that only check something, so only the calls that the SDK's worker makes itself are required
 * (docs/temporal-server.md).
 *
 * @param setNotReady receives the reason of each wait
 * @throws FollowUpError if waiting can't help, and the reason of `stop` if `stop` is aborted
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
  /**
   * The name of the current call, for the error text, if the SDK's worker needs this call. The value is undefined for other
   * calls. While connecting, the value is undefined too, because the SDK's own error names its call (GetSystemInfo).
   */
  let callName: string | undefined;
  const attempt = async () => {
    connection ??= await runtime.connect(config.connection);
    callName = undefined;
    const version = await checkServerVersion(connection, config.address);
    callName = 'DescribeNamespace';
    const isDescribed = await describeNamespace(connection, namespace, NAMESPACE_TIMEOUT_MS);
    if (!isDescribed && version === null) throw new Error('the response is not from a Temporal server');
    callName = undefined;
    await registerAndLogSearchAttributes(connection, namespace, logger).catch((error: unknown) => {
      // The plugin logs this problem, and an unknown version, when the worker runs.
      if (!isUnknownAttributesError(error)) throw error;
    });
    return connection;
  };
  const connecting = `connecting to the Temporal server at ${config.address}`;
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
      const failure = connectionError(error, { ...config, ...(callName && { callName }) });
      if (failure.code !== 'UNREACHABLE' && failure.code !== 'NAMESPACE_NOT_SET_UP') throw failure;
      setNotReady(failure.message);
      logger.warn(
        `waiting for the Temporal server (next try in ${formatDuration(waitMs)}): ${failure.message}`,
      );
    }
    // If `stop` is aborted, the next iteration throws its reason instead of the AbortError of `sleep`.
    await sleep(waitMs, undefined, { signal: stop }).catch(() => undefined);
  }
}

/**
 * Checks that the Temporal server responds, has the namespace, and accepts the credentials.
 *
 * @param timeoutMs the timeout in milliseconds
 * @returns false if the response is that the call is not implemented; the SDK's worker accepts this response
 * @throws ServiceError
 */
export async function describeNamespace(
  connection: NativeConnection,
  namespace: string,
  timeoutMs: number,
): Promise<boolean> {
  const request = () => connection.workflowService.describeNamespace({ namespace });
  try {
    await connection.withDeadline(Date.now() + timeoutMs, request);
    return true;
  } catch (error) {
    if (!isUnimplemented(error)) throw error;
    return false;
  }
}
