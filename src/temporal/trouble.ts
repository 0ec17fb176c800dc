import { once } from 'node:events';
import { isIP, type Socket } from 'node:net';
import { checkServerIdentity, connect as connectTls } from 'node:tls';
import type { FollowUpError } from '../core/errors';
import { ConfigurationError, type TemporalConfig } from './config';
import { hasGrpcStatus, TemporalUnreachableError, transportError } from './grpc-status';
import { noNamespace } from './search-attributes';

/**
 * Why Temporal can't be used, in words that name the variable to check. Waiting may heal `UNREACHABLE` and `NOT_SET_UP`, but
 * not a process's own settings.
 *
 * @param error of a connection or a call
 */
export async function whyNot(error: unknown, server: TemporalConfig): Promise<FollowUpError> {
  if (hasGrpcStatus(error, 'NOT_FOUND')) return noNamespace(server.namespace, error);
  const answered = transportError(error, server.address);
  if (answered?.code === 'UNAUTHORIZED') return answered;
  return (await lookAt(server)) ?? answered ?? noAnswer(server.address, error);
}

/** The error of a server of which nothing else is known. */
export function noAnswer(address: string, cause: unknown): FollowUpError {
  const words = (cause instanceof Error ? cause.message : String(cause)).slice(0, 300);
  const port = "use the gRPC port, 7233 by default, not the Web UI's";
  return unreachable(
    address,
    `it does not answer as a Temporal server (${words}); ${port}; if it wants TLS, ${TURN_TLS_ON}`,
    cause,
  );
}

function unreachable(address: string, reason: string, cause?: unknown): TemporalUnreachableError {
  const hint = 'check TEMPORAL_ADDRESS or the profile in temporal.toml';
  return new TemporalUnreachableError(`Can't reach Temporal at ${address}: ${reason}; ${hint}`, { cause });
}

const TURN_TLS_ON = 'set TEMPORAL_TLS=true, or TEMPORAL_API_KEY';
const CHECK_CLIENT_CERTIFICATE =
  'it may want a client certificate, or another one: check TEMPORAL_TLS_CLIENT_CERT_* and TEMPORAL_TLS_CLIENT_KEY_*';

/**
 * Why no connection comes about, which gRPC keeps to itself: makes one more, and looks how it ends.
 *
 * @param signal ends the look
 * @returns undefined where the server takes the connection; `MISCONFIGURED` for TLS settings that can't be right;
 *   `UNREACHABLE` for anything that a server that is only starting, or a proxy before one, might do too
 */
export async function lookAt(
  { address, connection: { tls = false } }: TemporalConfig,
  signal?: AbortSignal,
): Promise<FollowUpError | undefined> {
  const { hostname, port } = new URL(`tcp://${address}`);
  const host = hostname.replace(/^\[|\]$/g, '');
  const settings = typeof tls === 'object' && tls !== null ? tls : {};
  const { serverNameOverride, serverRootCACertificate: ca, clientCertPair: pair } = settings;
  const name = serverNameOverride ?? host;
  const socket = connectTls({
    host,
    port: Number(port || '7233'),
    ALPNProtocols: ['h2'],
    rejectUnauthorized: tls !== false,
    // Node warns of an IP address there (DEP0123), and TLS has none (RFC 6066, 3).
    servername: isIP(name) === 0 ? name : '',
    checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
    ...(ca ? { ca: Buffer.from(ca) } : {}),
    ...(pair ? { cert: Buffer.from(pair.crt), key: Buffer.from(pair.key) } : {}),
  });
  // TLS 1.3 refuses a client's certificate after the handshake: where an HTTP/2 server sends its settings.
  const trouble = await endBefore(tls === false ? 'secureConnect' : 'data', socket, signal);
  const { code = 'ECONNRESET', message = '', reason = message, syscall } = trouble ?? {};
  const isEnd = code === 'ECONNRESET' || code === 'EPIPE';
  // An error of the system, such as a refused connection, says nothing about TLS; EPROTO is OpenSSL's.
  if (syscall !== undefined && code !== 'EPROTO' && !isEnd) return unreachable(address, message);
  const wrongTls = (text: string) => new ConfigurationError([{ field: `Temporal at ${address}`, text }]);
  if (tls === false) return trouble ? undefined : wrongTls(`the server wants TLS; ${TURN_TLS_ON}`);
  if (!trouble || trouble === SILENCE) return undefined;
  if (isEnd) return unreachable(address, `the server ends the connection; ${CHECK_CLIENT_CERTIFICATE}`);
  if (/ALERT|HANDSHAKE/.test(code))
    return wrongTls(`the server refuses the TLS handshake (${reason}); ${CHECK_CLIENT_CERTIFICATE}`);
  return wrongTls(
    /^(ERR_SSL_|EPROTO)/.test(code)
      ? 'the server speaks no TLS; unset TEMPORAL_TLS*, or set TEMPORAL_TLS=false if an API key turns it on'
      : `the server's certificate is not accepted (${reason}); check TEMPORAL_ADDRESS, TEMPORAL_TLS_SERVER_NAME and TEMPORAL_TLS_SERVER_CA_CERT_*`,
  );
}

interface SocketError extends NodeJS.ErrnoException {
  readonly reason?: string;
  readonly errors?: readonly SocketError[];
}

/** A server answers the first bytes within this time; one that says nothing tells nothing. */
const SILENCE_MS = 2_000;
const SILENCE: SocketError = new Error('the server says nothing');
/** A firewall may drop what is sent to an address. */
const DEAF: SocketError = Object.assign(new Error('the host does not answer'), {
  code: 'ETIMEDOUT',
  syscall: 'connect',
});

/** What ends a connection before it has come as far as `event`. */
async function endBefore(event: string, socket: Socket, signal?: AbortSignal) {
  const over = AbortSignal.any([AbortSignal.timeout(SILENCE_MS), ...(signal ? [signal] : [])]);
  socket.once('end', () => socket.destroy(new Error('the connection was ended')));
  try {
    await once(socket, event, { signal: over });
    return undefined;
  } catch (error) {
    if (over.aborted) return socket.connecting ? DEAF : SILENCE;
    // Of a name with several addresses, such as localhost: one error for each, under one without words.
    return (error as SocketError).errors?.[0] ?? (error as SocketError);
  } finally {
    socket.on('error', () => undefined).destroy();
  }
}
