import { Client, Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import { loadDataConverter, loadTemporalConfig } from '../temporal/connection-config';
import { hasGrpcStatus } from '../temporal/grpc-status';
import { connectionError } from '../temporal/server-error';

const CONNECT_TIMEOUT_MS = 5_000;

/** A Temporal server that restarts is back within a second; other errors must not delay the error message. */
const RETRY_CONNECTING_MS = 1_000;

export interface ConnectOptions {
  /** @default process.env */
  // The declarations of config.ts need @temporalio/worker, which callers don't have.
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Milliseconds until the attempt fails. A connection that is rejected fails after at most a second. @default 5000 */
  readonly timeout?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Connects using the `TEMPORAL_*` variables or the profile in `temporal.toml`, by default to localhost:7233.
 *
 * @throws TemporalUnreachableError with gRPC's reason if there is no connection; FollowUpError `INVALID_CONFIGURATION` if variables or
 *   profile are invalid, `UNAUTHORIZED` if the Temporal server rejects the credentials
 */
export async function connectClient(
  options: ConnectOptions = {},
): Promise<{ client: Client; address: string; close: () => Promise<void> }> {
  const { env = process.env, signal, timeout = CONNECT_TIMEOUT_MS } = options;
  signal?.throwIfAborted();
  const config = loadTemporalConfig(env);
  const dataConverter = await loadDataConverter(env);
  const { address, namespace } = config;
  const retries = createStoppableRetries(Math.min(RETRY_CONNECTING_MS, timeout / 2));
  const connection = Connection.lazy({
    ...config.connection,
    interceptors: [makeGrpcRetryInterceptor(retries.options)],
  });
  const aborted = new Promise<never>((_, reject) => {
    signal?.addEventListener('abort', reject, { once: true });
  });
  // The SDK's own `ensureConnected` waits for its timeout, and then does not have the reason.
  const firstCall = connection.withDeadline(Date.now() + timeout, () =>
    connection.workflowService.getSystemInfo({}),
  );
  try {
    await Promise.race([firstCall, aborted]);
    retries.markConnected();
  } catch (error) {
    // An old Temporal server does not have this call.
    if (hasGrpcStatus(error, 'UNIMPLEMENTED')) retries.markConnected();
    else {
      await retries.closeConnection(connection);
      signal?.throwIfAborted();
      throw connectionError(error, config);
    }
  }
  const client = new Client({ connection, namespace, ...(dataConverter && { dataConverter }) });
  return { client, address, close: () => retries.closeConnection(connection) };
}

/**
 * The SDK's own retries, which can be ended. A retry that is due after its connection was closed throws in a timer, which ends
 * the process (SDK 1.24). The connection is therefore closed after its last retry.
 *
 * @param connectingMs for how long the first call is retried
 */
function createStoppableRetries(connectingMs: number) {
  const defaults = defaultGrpcRetryOptions();
  let dueAt = 0;
  let retryUntil = performance.now() + connectingMs;
  const options: typeof defaults = {
    retryableDecider: (...failed) => performance.now() < retryUntil && defaults.retryableDecider(...failed),
    delayFunction: (...failed) => {
      const waitMs = defaults.delayFunction(...failed);
      dueAt = Math.max(dueAt, performance.now() + waitMs);
      return waitMs;
    },
  };
  const closeConnection = async (connection: Connection): Promise<void> => {
    retryUntil = 0;
    const dueInMs = dueAt - performance.now();
    if (dueInMs <= 0) return connection.close();
    setTimeout(() => void connection.close().catch(() => undefined), dueInMs + 100);
  };
  const markConnected = (): void => {
    retryUntil = Infinity;
  };
  return { options, markConnected: markConnected, closeConnection: closeConnection };
}
