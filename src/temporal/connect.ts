import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import { loadDataConverter, loadTemporalConfig } from './config';
import { noServer, serverError } from './server-error';
import { probe } from './trouble';

const CONNECT_TIMEOUT_MS = 5_000;

const PROBE_AFTER_MS = 1_000;

export interface ConnectOptions {
  /** @default process.env */
  // The declarations of config.ts need @temporalio/worker, which callers don't have.
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Milliseconds until the attempt is given up; sooner where it is clear that it can't succeed. @default 5000 */
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
  const retries = endableRetries();
  const connection = Connection.lazy({
    ...config.connection,
    connectTimeout: timeout,
    interceptors: [makeGrpcRetryInterceptor(retries.options)],
  });
  const attempt = new AbortController();
  const over = AbortSignal.any([attempt.signal, ...(signal ? [signal] : [])]);
  const ended = new Promise<never>((_, reject) => {
    over.addEventListener('abort', reject, { once: true });
    sleep(Math.min(PROBE_AFTER_MS, timeout / 2), undefined, { signal: over })
      .then(() => probe(config, over))
      .then((trouble) => {
        if (trouble !== undefined) reject(trouble);
      }, reject);
  });
  try {
    await Promise.race([connection.ensureConnected(), ended]);
  } catch (error) {
    await retries.end(connection);
    signal?.throwIfAborted();
    throw serverError(error, config) ?? noServer(address, error);
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
function endableRetries() {
  const usual = defaultGrpcRetryOptions();
  let dueAt = 0;
  let isOver = false;
  const options: typeof usual = {
    retryableDecider: (...failed) => !isOver && usual.retryableDecider(...failed),
    delayFunction: (...failed) => {
      const waitMs = usual.delayFunction(...failed);
      dueAt = Math.max(dueAt, performance.now() + waitMs);
      return waitMs;
    },
  };
  const end = async (connection: Connection): Promise<void> => {
    isOver = true;
    const dueInMs = dueAt - performance.now();
    if (dueInMs <= 0) return connection.close();
    setTimeout(() => void connection.close().catch(() => undefined), dueInMs + 100);
  };
  return { options, end };
}
