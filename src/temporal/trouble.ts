import { once } from 'node:events';
import { isIP } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { checkServerIdentity, connect } from 'node:tls';
import { type FollowUpError, hasCode } from '../core/errors';
import { ConfigurationError, type TemporalConfig, tlsOptions } from './config';
import { CHECK_TLS, noServer, serverError, TURN_TLS_ON, unreachable } from './server-error';

/** Why Temporal can't be used, in words that name the variable to check. @param error of a connection or a call */
export async function whyNot(error: unknown, server: TemporalConfig): Promise<FollowUpError> {
  const told = serverError(error, server);
  if (hasCode(told, 'UNAUTHORIZED', 'NOT_SET_UP')) return told;
  return (await probe(server)) ?? (hasCode(told, 'UNREACHABLE') ? told : noServer(server.address, error));
}

type SocketError = NodeJS.ErrnoException & { readonly reason?: string };

/**
 * Why no connection comes about, which gRPC keeps to itself: makes one by TLS, until it ends or `signal` is aborted.
 *
 * @returns undefined where the server takes the connection, or says nothing; `MISCONFIGURED` for TLS settings that can't be
 *   right; `UNREACHABLE` for anything that a server that is only starting, or a proxy before one, might do too
 */
export async function probe({ address, connection: { tls } }: TemporalConfig, signal?: AbortSignal) {
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
  if (signal) addAbortSignal(signal, socket);
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
