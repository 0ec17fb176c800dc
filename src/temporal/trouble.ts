import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { checkServerIdentity, connect as connectTls } from 'node:tls';
import type { FollowUpError } from '../core/errors';
import { ConfigurationError, type TemporalConfig } from './config';
import { hasGrpcStatus, TemporalUnreachableError, transportError } from './grpc-status';
import { noNamespace } from './search-attributes';

/**
 * Why Temporal can't be used, in words that name the variable to check. Waiting may heal `UNREACHABLE` and `NOT_SET_UP`: a
 * server that is not up yet, a namespace that has still to be created. It does not heal a process's own settings.
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
  const text = (cause instanceof Error ? cause.message : String(cause)).slice(0, 300);
  const words = `it does not answer as a Temporal server (${text})`;
  // The Rust core refuses some certificates that Node accepts (SDK 1.24, measured).
  if (text.includes('InvalidCertificate')) return wrongTls(address, words);
  const port = "use the gRPC port, 7233 by default, not the Web UI's";
  return unreachable(address, `${words}; ${port}; if it wants TLS, ${TURN_TLS_ON}`, cause);
}

function wrongTls(address: string, text: string): ConfigurationError {
  return new ConfigurationError([{ field: `Temporal at ${address}`, text }]);
}

function unreachable(address: string, reason: string, cause?: unknown): TemporalUnreachableError {
  const hint = 'check TEMPORAL_ADDRESS or the profile in temporal.toml';
  return new TemporalUnreachableError(`Can't reach Temporal at ${address}: ${reason}; ${hint}`, { cause });
}

/**
 * Why no connection comes about, which gRPC keeps to itself: makes one connection more, or two, and looks how they end.
 *
 * @param signal ends the look
 * @returns undefined where the server takes the connection; `MISCONFIGURED` for TLS settings that can't be right;
 *   `UNREACHABLE` for anything that a server that is only starting, or a proxy before one, might do too
 */
export async function lookAt(
  { address, connection }: TemporalConfig,
  signal?: AbortSignal,
): Promise<FollowUpError | undefined> {
  const { hostname, port } = new URL(`tcp://${address}`);
  const endpoint = {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port || '7233'),
    ALPNProtocols: ['h2'],
  };
  const tls = connection.tls ?? false;
  if (tls === false) {
    const trouble = await troubleOf(connectTcp(endpoint), 'connect', signal);
    if (trouble) return unreachable(address, trouble.message);
    const greeting = connectTls({ ...endpoint, rejectUnauthorized: false });
    const noTls = await troubleOf(greeting, 'secureConnect', signal);
    return noTls ? undefined : wrongTls(address, `the server wants TLS; ${TURN_TLS_ON}`);
  }
  const { serverNameOverride, serverRootCACertificate: ca, clientCertPair: pair } = tls === true ? {} : tls;
  const name = serverNameOverride ?? endpoint.host;
  const handshake = connectTls({
    ...endpoint,
    // Node warns of an IP address there (DEP0123), and TLS has none (RFC 6066, 3).
    servername: isIP(name) === 0 ? name : '',
    checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
    ...(ca ? { ca: Buffer.from(ca) } : {}),
    ...(pair ? { cert: Buffer.from(pair.crt), key: Buffer.from(pair.key) } : {}),
  });
  // TLS 1.3 refuses a client's certificate after the handshake: where an HTTP/2 server sends its settings.
  const trouble = await troubleOf(handshake, 'data', signal);
  if (!trouble || trouble === SILENCE) return undefined;
  if (trouble === ENDED) return unreachable(address, `${ENDED.message}; ${CHECK_CLIENT_CERTIFICATE}`);
  // An error of the system, such as a refused connection, says nothing about TLS; EPROTO is OpenSSL's.
  const isSystem = trouble.syscall !== undefined && trouble.code !== 'EPROTO';
  return isSystem ? unreachable(address, trouble.message) : wrongTls(address, tlsWords(trouble));
}

/** A server answers the first bytes within this time; one that says nothing tells nothing. */
const SILENCE_MS = 2_000;

interface SocketError extends NodeJS.ErrnoException {
  readonly reason?: string;
  readonly errors?: readonly SocketError[];
}

const SILENCE: SocketError = new Error('the server says nothing');
const ENDED: SocketError = new Error('the server ends the connection');

/** What keeps a connection from coming as far as `event`. */
function troubleOf(
  socket: Socket,
  event: 'connect' | 'secureConnect' | 'data',
  signal: AbortSignal | undefined,
): Promise<SocketError | undefined> {
  return new Promise<SocketError | undefined>((resolve) => {
    const giveUp = (): void => {
      // A firewall may drop what is sent to an address.
      const deaf = Object.assign(new Error('the host does not answer'), { syscall: 'connect' });
      resolve(socket.connecting ? deaf : SILENCE);
    };
    socket.setTimeout(SILENCE_MS, giveUp);
    signal?.addEventListener('abort', giveUp, { once: true });
    socket.once(event, () => {
      resolve(undefined);
    });
    socket.once('error', (failure: SocketError) => {
      // Of a name with several addresses, such as localhost: one error for each, under one without words.
      const error = failure.errors?.[0] ?? failure;
      // A reset says no more than an end does.
      resolve(error.code === 'ECONNRESET' || error.code === 'EPIPE' ? ENDED : error);
    });
    socket.once('close', () => {
      resolve(ENDED);
    });
  }).finally(() => socket.destroy());
}

const TURN_TLS_ON = 'set TEMPORAL_TLS=true, or TEMPORAL_API_KEY';
const CHECK_CLIENT_CERTIFICATE =
  'it may want a client certificate, or another one: check TEMPORAL_TLS_CLIENT_CERT_* and TEMPORAL_TLS_CLIENT_KEY_*';

function tlsWords({ code = '', message, reason = message }: SocketError): string {
  if (code.includes('NO_APPLICATION_PROTOCOL'))
    return 'the server speaks TLS, but no HTTP/2, so it is not Temporal; check TEMPORAL_ADDRESS';
  if (/ALERT|HANDSHAKE/.test(code))
    return `the server refuses the TLS handshake (${reason}); ${CHECK_CLIENT_CERTIFICATE}`;
  if (/^(ERR_SSL_|EPROTO)/.test(code))
    return 'the server speaks no TLS; unset TEMPORAL_TLS*, or set TEMPORAL_TLS=false if an API key turns it on';
  const what = 'check TEMPORAL_ADDRESS, TEMPORAL_TLS_SERVER_NAME and TEMPORAL_TLS_SERVER_CA_CERT_*';
  if (!/CERT|ISSUER|SIGNATURE|CRL/.test(code)) return `no TLS connection comes about (${reason}); ${what}`;
  return `the server's certificate is not accepted (${reason}); ${what}`;
}
