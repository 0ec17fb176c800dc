import { Client, Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import { loadDataConverter, loadTemporalConfig } from './config';
import { whyNot } from './trouble';

const CONNECT_TIMEOUT_MS = 5_000;

export interface ConnectOptions {
  /** @default process.env */
  // The declarations of config.ts need @temporalio/worker, which callers don't have.
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Milliseconds until the attempt is given up, and looked at for up to 2 s to say why. @default 5000 */
  readonly timeout?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Connects by the variables `TEMPORAL_*`, the profile of `temporal.toml`, or to localhost:7233.
 *
 * @throws TemporalUnreachableError when the server doesn't answer; FollowUpError `MISCONFIGURED` when variables, profile or TLS
 *   settings are wrong, `UNAUTHORIZED` when the server refuses the credentials
 */
export async function connectClient(
  options: ConnectOptions = {},
): Promise<{ client: Client; address: string; close: () => Promise<void> }> {
  const { env = process.env, signal, timeout = CONNECT_TIMEOUT_MS } = options;
  signal?.throwIfAborted();
  const config = loadTemporalConfig(env);
  const dataConverter = await loadDataConverter(env);
  const { address, namespace } = config;
  const retries = new Retries();
  const connection = Connection.lazy({
    ...config.connection,
    connectTimeout: timeout,
    interceptors: [makeGrpcRetryInterceptor(retries)],
  });
  const attempt = new AbortController();
  const left = new Promise<never>((_, reject) => {
    signal?.addEventListener('abort', reject, { signal: attempt.signal });
  });
  try {
    await Promise.race([connection.ensureConnected(), left]);
  } catch (error) {
    await retries.end(connection);
    signal?.throwIfAborted();
    throw await whyNot(error, config);
  } finally {
    attempt.abort();
  }
  const client = new Client({ connection, namespace, ...(dataConverter && { dataConverter }) });
  return { client, address, close: () => retries.end(connection) };
}

/**
 * The SDK's own retries, which can be ended: one that is due after its connection was closed throws out of a timer, by which
 * Node ends the process (SDK 1.24). So a connection is closed when the last one is over.
 */
class Retries {
  private readonly usual = defaultGrpcRetryOptions();
  private dueAt = 0;
  private isOver = false;

  readonly retryableDecider = (attempt: number, status: Status): boolean =>
    !this.isOver && this.usual.retryableDecider(attempt, status);

  readonly delayFunction = (attempt: number, status: Status): number => {
    const waitMs = this.usual.delayFunction(attempt, status);
    this.dueAt = Math.max(this.dueAt, performance.now() + waitMs);
    return waitMs;
  };

  async end(connection: Connection): Promise<void> {
    this.isOver = true;
    const dueInMs = this.dueAt - performance.now();
    if (dueInMs <= 0) return connection.close();
    setTimeout(() => void connection.close().catch(() => undefined), dueInMs + 100);
  }
}

type Status = Parameters<ReturnType<typeof defaultGrpcRetryOptions>['retryableDecider']>[1];
