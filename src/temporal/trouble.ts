import { once } from 'node:events';
import { isIP } from 'node:net';
import { checkServerIdentity, connect } from 'node:tls';
import type { FollowUpError } from '../core/errors';
import { ConfigurationError, type TemporalConfig } from './config';
import { hasGrpcStatus, TemporalUnreachableError, transportError } from './grpc-status';
import { noNamespace } from './search-attributes';

/** Why Temporal can't be used, in words that name the variable to check. @param error of a connection or a call */
export async function whyNot(error: unknown, server: TemporalConfig): Promise<FollowUpError> {
  if (hasGrpcStatus(error, 'NOT_FOUND')) return noNamespace(server.namespace, error);
  const answered = transportError(error, server.address);
  if (answered?.code === 'UNAUTHORIZED') return answered;
  return (await probe(server)) ?? answered ?? noAnswer(server.address, error);
}

export function noAnswer(address: string, cause: unknown): FollowUpError {
  const words = (cause instanceof Error ? cause.message : String(cause)).slice(0, 300);
  const port = "use the gRPC port, 7233 by default, not the Web UI's";
  const reason = `it does not answer as a Temporal server (${words}); ${port}; if it wants TLS, ${TURN_TLS_ON}`;
  return unreachable(address, reason, cause);
}

function unreachable(address: string, reason: string, cause?: unknown): TemporalUnreachableError {
  const hint = 'check TEMPORAL_ADDRESS or the profile in temporal.toml';
  return new TemporalUnreachableError(`Can't reach Temporal at ${address}: ${reason}; ${hint}`, { cause });
}

const TURN_TLS_ON = 'set TEMPORAL_TLS=true, or TEMPORAL_API_KEY';
const CHECK_TLS =
  'check TEMPORAL_TLS (true or false; an API key turns it on), TEMPORAL_TLS_SERVER_NAME, TEMPORAL_TLS_SERVER_CA_CERT_*, ' +
  'TEMPORAL_TLS_CLIENT_CERT_* and TEMPORAL_TLS_CLIENT_KEY_*';

/** A server answers within this time, each time; one that says nothing tells nothing. */
const SILENCE_MS = 2_000;

interface SocketError extends NodeJS.ErrnoException {
  readonly reason?: string;
  readonly errors?: readonly SocketError[];
}

/**
 * Why no connection comes about, which gRPC keeps to itself: makes one by TLS, until it ends or `signal` is aborted.
 *
 * @returns undefined where the server takes the connection; `MISCONFIGURED` for TLS settings that can't be right;
 *   `UNREACHABLE` for anything that a server that is only starting, or a proxy before one, might do too
 */
export async function probe(
  { address, connection }: TemporalConfig,
  signal?: AbortSignal,
): Promise<FollowUpError | undefined> {
  const tls = connection.tls ?? false;
  const { hostname, port } = new URL(`tcp://${address}`);
  const host = hostname.replace(/^\[|\]$/g, '');
  const {
    serverNameOverride,
    serverRootCACertificate: ca,
    clientCertPair: pair,
  } = typeof tls === 'object' ? tls : {};
  const name = serverNameOverride ?? host;
  const wrongTls = (text: string) => new ConfigurationError([{ field: `Temporal at ${address}`, text }]);
  const socket = connect({
    host,
    port: Number(port || '7233'),
    ALPNProtocols: ['h2'],
    rejectUnauthorized: tls !== false,
    // Node warns of an IP address there (DEP0123), and TLS has none (RFC 6066, 3).
    servername: isIP(name) === 0 ? name : '',
    checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
    ...(ca && { ca: Buffer.from(ca) }),
    ...(pair && { cert: Buffer.from(pair.crt), key: Buffer.from(pair.key) }),
  });
  // `AbortSignal.any` lets a time-out be garbage collected, and then it never comes (Node 20, measured).
  const silence = new AbortController();
  socket.setTimeout(SILENCE_MS, () => {
    silence.abort();
  });
  const over = AbortSignal.any([silence.signal, ...(signal ? [signal] : [])]);
  socket.once('end', () => {
    socket.destroy(Object.assign(new Error('the server ends the connection'), { syscall: 'read' }));
  });
  try {
    // TLS 1.3 refuses a client's certificate after the handshake: where an HTTP/2 server sends its settings.
    await once(socket, tls === false ? 'secureConnect' : 'data', { signal: over });
    return tls === false ? wrongTls(`the server wants TLS; ${TURN_TLS_ON}`) : undefined;
  } catch (error) {
    if (over.aborted) return socket.connecting ? unreachable(address, 'the host does not answer') : undefined;
    // Of a name with several addresses, such as localhost: one error for each, under one without words.
    const failure = error as SocketError;
    const { code = '', syscall = '', message, reason = message } = failure.errors?.[0] ?? failure;
    if (/^(connect|getaddrinfo)$/.test(syscall)) return unreachable(address, message);
    if (tls === false) return undefined;
    // EPROTO is OpenSSL's.
    if (syscall !== '' && code !== 'EPROTO') return unreachable(address, `${message}; ${CHECK_TLS}`);
    return wrongTls(`no TLS connection comes about (${code}: ${reason}); ${CHECK_TLS}`);
  } finally {
    socket.on('error', () => undefined).destroy();
  }
}
