import { once } from 'node:events';
import { isIP } from 'node:net';
import { checkServerIdentity, connect } from 'node:tls';
import { type FollowUpError, hasCode } from '../core/errors';
import { ConfigurationError, type TemporalConfig, tlsOptions } from './config';
import { serverError, TemporalUnreachableError } from './server-error';

const TURN_TLS_ON = 'set TEMPORAL_TLS=true, or TEMPORAL_API_KEY';
const CHECK_TLS =
  'check TEMPORAL_TLS (true or false; an API key turns it on), TEMPORAL_TLS_SERVER_NAME, TEMPORAL_TLS_SERVER_CA_CERT_*, ' +
  'TEMPORAL_TLS_CLIENT_CERT_* and TEMPORAL_TLS_CLIENT_KEY_*';

/** Why Temporal can't be used, in words that name the variable to check. @param error of a connection or a call */
export async function whyNot(error: unknown, server: TemporalConfig): Promise<FollowUpError> {
  const told = serverError(error, server);
  if (hasCode(told, 'UNAUTHORIZED', 'NOT_SET_UP')) return told;
  return (await probe(server)) ?? (hasCode(told, 'UNREACHABLE') ? told : noServer(server.address, error));
}

type SocketError = NodeJS.ErrnoException & { readonly reason?: string };

/**
 * Why no connection comes about, which gRPC keeps to itself: makes one by TLS.
 *
 * @returns undefined where the server takes the connection, or says nothing; `MISCONFIGURED` for TLS settings that can't be
 *   right; `UNREACHABLE` for anything that a server that is only starting, or a proxy before one, might do too
 */
async function probe({ address, connection: { tls } }: TemporalConfig) {
  const { hostname, port } = new URL(`tcp://${address}`);
  const host = hostname.replace(/^\[|\]$/g, '');
  const { serverNameOverride, serverRootCACertificate: ca, clientCertPair: pair } = tlsOptions(tls);
  const pem = {
    ca: ca && Buffer.from(ca),
    cert: pair && Buffer.from(pair.crt),
    key: pair && Buffer.from(pair.key),
  };
  const name = serverNameOverride ?? host;
  // TLS has no IP address there (RFC 6066, 3).
  const servername = isIP(name) === 0 ? name : '';
  const peer = { host, port: Number(port || '7233'), servername, rejectUnauthorized: Boolean(tls) };
  const identity: typeof checkServerIdentity = (_, certificate) => checkServerIdentity(name, certificate);
  const socket = connect({ ...peer, ...pem, checkServerIdentity: identity, ALPNProtocols: ['h2'] });
  const end = (syscall: string, words: string) => socket.destroy(Object.assign(Error(words), { syscall }));
  // What is silent for two seconds tells nothing.
  socket.setTimeout(2_000, () => end(socket.connecting ? 'connect' : 'none', 'the host does not answer'));
  socket.once('end', () => end('read', 'the server ends the connection'));
  const wrongTls = (text: string) => new ConfigurationError([{ field: `Temporal at ${address}`, text }]);
  try {
    // TLS 1.3 refuses a client's certificate after the handshake: where an HTTP/2 server sends its settings.
    await once(socket, tls ? 'data' : 'secureConnect');
    return tls ? undefined : wrongTls(`the server wants TLS; ${TURN_TLS_ON}`);
  } catch (error) {
    // Of a name with several addresses, such as localhost: one error for each, under one without words.
    const failure = (error as { errors?: SocketError[] }).errors?.[0] ?? (error as SocketError);
    const { code = '', syscall, message, reason = message } = failure;
    if (syscall === 'connect' || syscall === 'getaddrinfo') return unreachable(address, message);
    if (!tls || syscall === 'none') return undefined;
    if (syscall && code !== 'EPROTO' /* OpenSSL's */) return unreachable(address, `${message}; ${CHECK_TLS}`);
    return wrongTls(`no TLS connection comes about (${code}: ${reason}); ${CHECK_TLS}`);
  } finally {
    socket.on('error', () => undefined).destroy();
  }
}

/** @param error of a connection that is none to a Temporal server */
function noServer(address: string, error: unknown): FollowUpError {
  const words = (error instanceof Error ? error.message : String(error)).slice(0, 300);
  const port = "use the gRPC port, 7233 by default, not the Web UI's";
  const reason = `it does not answer as a Temporal server (${words}); ${port}; if it wants TLS, ${TURN_TLS_ON}`;
  return unreachable(address, reason, error);
}

function unreachable(address: string, reason: string, cause?: unknown): FollowUpError {
  const hint = 'check TEMPORAL_ADDRESS or the profile in temporal.toml';
  return new TemporalUnreachableError(`Can't reach Temporal at ${address}: ${reason}; ${hint}`, { cause });
}
