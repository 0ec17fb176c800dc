import { connect as openSocket } from 'node:net';
import { Client, Connection } from '@temporalio/client';
import { loadTemporalConfig } from './config';
import { grpcError } from './grpc-status';
import { FollowUpError } from '../core/errors';

/** gRPC's own second attempt comes after a second; five leave room for a TLS handshake across an ocean. */
const CONNECT_TIMEOUT_MS = 5_000;

/** Where no TCP connection comes about there is little to wait for, unless gRPC goes by a proxy that we don't know of. */
const REFUSED_TIMEOUT_MS = 1_000;

export interface ConnectOptions {
  /** Where `TEMPORAL_*` is read from, and the place of `temporal.toml`. @default process.env */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Milliseconds until the attempt is given up. @default 5000 */
  readonly timeoutMs?: number;
}

/** Thrown when the Temporal server can't be reached, or does not let us in. */
export class TemporalUnreachableError extends FollowUpError {
  override readonly name = 'TemporalUnreachableError';

  constructor(
    readonly address: string,
    reason: string,
    options?: ErrorOptions,
  ) {
    super('UNREACHABLE', `Can't reach Temporal at ${address}: ${reason}`, options);
  }
}

/**
 * Connects as the Temporal CLI and every SDK do: `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, TLS and API key variables,
 * else the profile of `temporal.toml`, else localhost:7233.
 *
 * @throws FollowUpError `MISCONFIGURED`; TemporalUnreachableError
 */
export async function connectClient(
  options: ConnectOptions = {},
): Promise<{ client: Client; address: string }> {
  const { connectionOptions, address, namespace } = loadConnection(options.env ?? process.env);
  const refusal = await refusalOf(address);
  const limitMs = options.timeoutMs ?? CONNECT_TIMEOUT_MS;
  const connectTimeout = refusal === undefined ? limitMs : Math.min(limitMs, REFUSED_TIMEOUT_MS);
  const connection = Connection.lazy({ ...connectionOptions, address, connectTimeout });
  try {
    await connection.ensureConnected();
  } catch (error) {
    await connection.close();
    const reason = grpcError(error)?.words ?? refusal ?? secureMismatch(connectionOptions.tls);
    throw new TemporalUnreachableError(address, reason, { cause: error });
  }
  return { client: new Client({ connection, namespace }), address };
}

function loadConnection(env: NonNullable<ConnectOptions['env']>) {
  const loaded = loadTemporalConfig(env);
  if (!loaded.ok) throw new FollowUpError('MISCONFIGURED', loaded.problems.join('; '));
  const { connection, address, namespace } = loaded.config;
  const { apiKey, tls, metadata } = connection;
  const connectionOptions = {
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(tls === undefined ? {} : { tls }),
    ...(metadata === undefined ? {} : { metadata }),
  };
  return { connectionOptions, address, namespace };
}

/** Why no TCP connection comes about, which gRPC keeps to itself; undefined where one does. */
async function refusalOf(address: string): Promise<string | undefined> {
  const { hostname, port } = new URL(`tcp://${address}`);
  return new Promise((resolve) => {
    const socket = openSocket({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || '7233') });
    const end = (reason: string | undefined): void => {
      socket.destroy();
      resolve(reason);
    };
    socket.setTimeout(1_000, () => {
      end('the host does not answer');
    });
    socket.once('connect', () => {
      end(undefined);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      end(SOCKET_ERRORS[error.code ?? ''] ?? error.message);
    });
  });
}

const SOCKET_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there (ECONNREFUSED)',
  ENOTFOUND: 'no such host (ENOTFOUND)',
  EAI_AGAIN: 'the name cannot be looked up now (EAI_AGAIN)',
  EHOSTUNREACH: 'no route to the host (EHOSTUNREACH)',
  ENETUNREACH: 'no route to the network (ENETUNREACH)',
};

function secureMismatch(tls: unknown): string {
  return tls === undefined || tls === false
    ? 'the server refuses plaintext; set TEMPORAL_TLS, or TEMPORAL_API_KEY'
    : 'the TLS connection fails; check that the server speaks TLS, and the certificates';
}
