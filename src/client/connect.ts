import { Client, Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import { loadDataConverter, loadTemporalConfig } from '../temporal/connection-config';
import { hasGrpcStatus } from '../temporal/grpc-status';
import { hideSecretsInErrors } from '../temporal/hide-secrets';
import { connectionError } from '../temporal/server-error';
import { requireSupportedVersion } from '../temporal/server-version';

const CONNECT_TIMEOUT_MS = 5_000;

/** The time for retries of the first call. A restarting Temporal server is back within a second, so a longer wait has no use. */
const RETRY_CONNECTING_MS = 1_000;

export interface ConnectOptions {
  /** The environment variables. @default process.env */
  // This type repeats `Environment` of connection-config.ts, because the type declarations of that file import @temporalio/worker,
  // which callers do not install.
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Milliseconds until connecting fails. A rejected connection fails after at most a second. @default 5000 */
  readonly timeout?: number;
  /** Ends connecting with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Connects using the `TEMPORAL_*` variables and the profile in `temporal.toml`, by default to localhost:7233.
 *
 * @throws TemporalUnreachableError with gRPC's reason if the connection fails
 * @throws FollowUpError `INVALID_CONFIGURATION` if a variable or the profile is invalid
 * @throws FollowUpError `UNAUTHORIZED` if the Temporal server rejects the credentials
 * @throws FollowUpError `UNSUPPORTED_SERVER` if the Temporal server is too old
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
    interceptors: [makeGrpcRetryInterceptor(retries.options), hideSecretsInErrors(config.secrets)],
  });
  const aborted = new Promise<never>((_, reject) => {
    signal?.addEventListener('abort', reject, { once: true });
  });
  // The SDK's `ensureConnected` waits until its timeout and then does not report the reason.
  const firstCall = connection.withDeadline(Date.now() + timeout, () =>
    connection.workflowService.getSystemInfo({}),
  );
  try {
    const { serverVersion } = await Promise.race([firstCall, aborted]);
    requireSupportedVersion(serverVersion, address);
    retries.markConnected();
  } catch (error) {
    // A Temporal server that is too old for this call responds with UNIMPLEMENTED, so the connection works.
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
 * Returns the SDK's default retries with the option to stop them. In SDK 1.24, a retry that is due after its connection was
 * closed throws in a timer, which ends the process. `closeConnection` therefore closes the connection after its last retry.
 *
 * @param connectingMs the number of milliseconds for which the first call is retried
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
  return { options, markConnected, closeConnection };
}
