import { Client, type ConnectionOptions } from '@temporalio/client';
import {
  checkCodec,
  type Environment,
  loadTemporalConfig,
  type TemporalConfig,
} from '../temporal/connection-config';
import { hasGrpcStatus } from '../temporal/grpc-status';
import { hideSecretsInErrors } from '../temporal/hide-secrets';
import { configureConnection, disposePlugins, loadPlugins, type TemporalPlugin } from '../temporal/plugins';
import { StoppableConnection } from '../temporal/sdk-internals';
import { connectionError } from '../temporal/server-error';
import { requireSupportedVersion } from '../temporal/server-version';
import { CALL_CHECKS, invalidHeaderError } from './call-runner';
import { booleanProblem, checkOptions, type OptionChecks, objectProblem } from './options';

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * The time after which a failed attempt of the first call is not retried. This time covers a short interruption. The last attempt can
 * start about a second later, because the wait before this attempt does not end at the limit.
 */
const RETRY_CONNECTING_MS = 1_000;

/**
 * The longest wait between two attempts to connect. With gRPC's default, a client would notice the server's return up to
 * 2 minutes later.
 */
const MAX_RECONNECT_WAIT_MS = 5_000;

export interface ConnectOptions {
  /** The environment variables. @default process.env */
  readonly env?: Environment | undefined;
  /**
   * If true, returns without a request, so that a service can start while the Temporal server is unreachable. The first call
   * connects. @default false
   */
  readonly lazy?: boolean | undefined;
  /** Milliseconds until connecting fails. A rejected connection fails after about two seconds at most. @default 5000 */
  readonly timeout?: number | undefined;
  /** Ends connecting with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** An unknown option, such as `address`, is an error: if it were ignored, the client would connect to another Temporal server. */
export const CONNECT_CHECKS: OptionChecks<ConnectOptions> = {
  env: objectProblem,
  lazy: booleanProblem,
  ...CALL_CHECKS,
};

/**
 * Connects using the `TEMPORAL_*` variables and the profile in `temporal.toml`, by default to localhost:7233.
 *
 * @throws InvalidRequestError if an option is unknown or invalid
 * @throws TemporalUnreachableError with gRPC's reason if the connection fails
 * @throws FollowUpError `INVALID_CONFIGURATION` if a variable, the profile or a plugin is invalid
 * @throws FollowUpError `UNAUTHORIZED` if the Temporal server rejects the credentials
 * @throws FollowUpError `UNSUPPORTED_SERVER` if the Temporal server is too old
 */
export async function connectClient(
  options: ConnectOptions = {},
): Promise<{ client: Client; address: string; close: () => Promise<void> }> {
  checkOptions(options, CONNECT_CHECKS);
  const { env = process.env, lazy = false, signal } = options;
  signal?.throwIfAborted();
  const config = loadTemporalConfig(env);
  const plugins = await loadPlugins(env);
  const { address, namespace } = config;
  let connection: OpenConnection | undefined;
  const close = async () => {
    await Promise.all([disposePlugins(plugins), connection?.close()]);
  };
  try {
    signal?.throwIfAborted();
    connection = openConnection(config, plugins);
    const client = new Client({ connection, namespace, plugins: [...plugins] });
    checkCodec(config, client.options.loadedDataConverter);
    if (!lazy) await ensureConnected(connection, config, options);
    return { client, address, close };
  } catch (error) {
    await close();
    throw error;
  }
}

type OpenConnection = ReturnType<typeof StoppableConnection.open>;

function openConnection(
  { connection, secrets }: TemporalConfig,
  plugins: readonly TemporalPlugin[],
): OpenConnection {
  const { interceptors, ...options } = configureConnection<ConnectionOptions>(
    plugins,
    'configureConnection',
    {
      ...connection,
      channelArgs: { 'grpc.max_reconnect_backoff_ms': MAX_RECONNECT_WAIT_MS },
      // The connection has its own retries, so the SDK's interceptor for retries is not in the list.
      interceptors: [],
    },
  );
  const keys = typeof options.apiKey === 'string' ? [options.apiKey] : [];
  return StoppableConnection.open({
    ...options,
    interceptors: [...(interceptors ?? []), hideSecretsInErrors([...secrets, ...keys])],
  });
}

/** Makes a first call, because the SDK's `ensureConnected` waits until its timeout and then does not report the reason. */
async function ensureConnected(
  connection: OpenConnection,
  config: TemporalConfig,
  { signal, timeout = CONNECT_TIMEOUT_MS }: ConnectOptions,
): Promise<void> {
  connection.retries?.limit(performance.now() + Math.min(RETRY_CONNECTING_MS, timeout / 2));
  const call = new AbortController();
  const abort = (): void => {
    call.abort();
  };
  signal?.addEventListener('abort', abort);
  try {
    const { serverVersion } = await connection.withAbortSignal(call.signal, () =>
      connection.withDeadline(Date.now() + timeout, () => connection.workflowService.getSystemInfo({})),
    );
    requireSupportedVersion(serverVersion, config.address);
  } catch (error) {
    // A gateway may reject this call with UNIMPLEMENTED. The connection works, and the version is not checked.
    if (!hasGrpcStatus(error, 'UNIMPLEMENTED') || signal?.aborted === true) {
      signal?.throwIfAborted();
      throw invalidHeaderError(error) ?? connectionError(error, config);
    }
  } finally {
    signal?.removeEventListener('abort', abort);
  }
  connection.retries?.limit(Infinity);
}
