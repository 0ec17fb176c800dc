import { connect as openSocket } from 'node:net';
import { Client, Connection } from '@temporalio/client';
import { FollowUpError } from '../core/errors';
import { loadTemporalConfig, type TemporalConfig } from './config';
import { loadDataConverter } from './data-converter';
import { endpointOf, tlsTrouble } from './tls';
import { TemporalUnreachableError, transportError } from './transport-errors';

/** gRPC's own second attempt comes after a second; five leave room for a TLS handshake across an ocean. */
const CONNECT_TIMEOUT_MS = 5_000;

/** Where no TCP connection comes about there is little to wait for, unless gRPC goes by a proxy that we don't know of. */
const REFUSED_TIMEOUT_MS = 1_000;

export interface ConnectOptions {
  /** Where `TEMPORAL_*`, the place of `temporal.toml` and `FOLLOW_UP_DATA_CONVERTER` are read from. @default process.env */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Milliseconds until the attempt is given up. @default 5000 */
  readonly timeoutMs?: number;
}

/** Thrown when the configuration of the connection can't be used: variables, profile, TLS. The message names the place. */
export class TemporalConfigError extends FollowUpError {
  override readonly name = 'TemporalConfigError';

  constructor(reason: string, options?: ErrorOptions) {
    super('MISCONFIGURED', `The connection to Temporal is misconfigured: ${reason}`, options);
  }
}

/**
 * Connects as the Temporal CLI and every SDK do: `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, TLS and API key variables,
 * else the profile of `temporal.toml`, else localhost:7233.
 *
 * @throws TemporalConfigError when variables, profile or TLS settings are wrong
 * @throws TemporalUnreachableError when the server doesn't answer; FollowUpError `UNAUTHORIZED` when it refuses the credentials
 */
export async function connectClient(
  options: ConnectOptions = {},
): Promise<{ client: Client; address: string }> {
  const env = options.env ?? process.env;
  const { connectionOptions, address, namespace } = loadConnection(env);
  const dataConverter = await loadDataConverter(env);
  if (dataConverter !== undefined && 'problem' in dataConverter)
    throw new TemporalConfigError(dataConverter.problem);
  const refusal = await refusalOf(address);
  const limitMs = options.timeoutMs ?? CONNECT_TIMEOUT_MS;
  const connectTimeout = refusal === undefined ? limitMs : Math.min(limitMs, REFUSED_TIMEOUT_MS);
  const connection = Connection.lazy({ ...connectionOptions, address, connectTimeout });
  try {
    await connection.ensureConnected();
  } catch (error) {
    await connection.close();
    throw await whyNot(error, address, connectionOptions, refusal);
  }
  const client = new Client({
    connection,
    namespace,
    ...(dataConverter === undefined ? {} : { dataConverter }),
  });
  return { client, address };
}

function loadConnection(env: NonNullable<ConnectOptions['env']>) {
  const loaded = loadTemporalConfig(env);
  if (!loaded.ok) throw new TemporalConfigError(loaded.problems.join('; '));
  const { connection, address, namespace } = loaded.config;
  const { apiKey, tls, metadata } = connection;
  const connectionOptions = {
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(tls === undefined ? {} : { tls }),
    ...(metadata === undefined ? {} : { metadata }),
  };
  return { connectionOptions, address, namespace };
}

async function whyNot(
  cause: unknown,
  address: string,
  { tls, apiKey }: Pick<TemporalConfig['connection'], 'tls' | 'apiKey'>,
  refusal: string | undefined,
): Promise<FollowUpError> {
  const answered = transportError(cause, address);
  if (answered?.code === 'UNAUTHORIZED') return answered;
  if (refusal !== undefined) return unreachable(address, refusal, cause);
  // An API key turns TLS on where nothing else is said, as the SDK does.
  const trouble = await tlsTrouble(address, tls ?? apiKey !== undefined);
  if (trouble?.isCertain) return new TemporalConfigError(`${address}: ${trouble.words}`, { cause });
  if (trouble !== undefined) return unreachable(address, trouble.words, cause);
  return (
    answered ??
    unreachable(address, 'something listens there, but does not answer as a Temporal server', cause)
  );
}

function unreachable(address: string, reason: string, cause: unknown): TemporalUnreachableError {
  return new TemporalUnreachableError(`Can't reach Temporal at ${address}: ${reason}.`, { cause });
}

/** Why no TCP connection comes about, which gRPC keeps to itself; undefined where one does. */
async function refusalOf(address: string): Promise<string | undefined> {
  const { hostname, port } = endpointOf(address);
  return new Promise((resolve) => {
    const socket = openSocket({ host: hostname, port });
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
