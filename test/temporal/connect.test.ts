import dns from 'node:dns';
import { createServer as createWebServer } from 'node:http';
import { createSecureServer, type SecureServerOptions } from 'node:http2';
import { createServer as createTcpServer } from 'node:net';
import { describe, expect, it, jest } from '@jest/globals';
import { NativeConnection } from '@temporalio/worker';
import getPort from 'get-port';
import { FollowUpClient } from '../../src/entries/client';
import type { FollowUpError } from '../../src/core/errors';
import { serverError } from '../../src/temporal/server-error';
import { whyNot } from '../../src/temporal/trouble';
import { selfSignedCertificate } from '../agent-api/self-signed-certificate';
import { answering, grpcServer, LETS_IN, listening } from './grpc-server';

const ofServer = selfSignedCertificate();
/** Of the client. */
const { cert, key } = selfSignedCertificate();
const TRUST = { TEMPORAL_TLS_SERVER_CA_CERT_DATA: ofServer.cert };
const MUTUAL = { ...TRUST, TEMPORAL_TLS_CLIENT_CERT_DATA: cert, TEMPORAL_TLS_CLIENT_KEY_DATA: key };
const OTHER_NAME = { ...TRUST, TEMPORAL_TLS_SERVER_NAME: 'temporal.example.com' };
const OTHER_KEY = { ...MUTUAL, TEMPORAL_TLS_CLIENT_KEY_DATA: ofServer.key };
const API_KEY = { TEMPORAL_API_KEY: 'tmprl_secret' };

function secure(options: SecureServerOptions = {}): Promise<string> {
  return listening(answering(createSecureServer({ ...ofServer, ...options }), () => LETS_IN));
}

const hangingUp = () => listening(createTcpServer((socket) => socket.destroy()));

/** A server that lets in only the client of one certificate. */
function mutual(ca: string): Promise<string> {
  return secure({ requestCert: true, rejectUnauthorized: true, ca: [ca] });
}

function connect(address: string, env: Record<string, string> = {}, timeout = 10_000) {
  return FollowUpClient.connect({ env: { TEMPORAL_ADDRESS: address, ...env }, timeout });
}

/** Its code and its message. */
function errorOf(work: Promise<unknown>): Promise<unknown> {
  const told = ({ code, message }: FollowUpError) => `${code}: ${message}`;
  return work.catch((error: unknown) => told(error as FollowUpError));
}

describe('a connection', () => {
  it('over TLS with a private authority and a client certificate comes about', async () => {
    const client = await connect(await mutual(cert), MUTUAL);
    expect(client.namespace).toBe('default');
    await client.close();
  });

  it.concurrent.each<[string, () => Promise<string>, Record<string, string>, RegExp]>([
    ['an unknown authority', () => secure(), { TEMPORAL_TLS: 'true' }, /^MISCON.* \(DEPTH_ZERO_SELF_SIGNED/],
    ['a certificate for another name', () => secure(), OTHER_NAME, /^MISCON.* \(ERR_TLS_CERT_ALTNAME_/],
    ['no certificate where one is wanted', () => mutual(cert), TRUST, /^MISCON.*_REQUIRED: /],
    ['a key of another certificate', () => secure(), OTHER_KEY, /^MISCON.* be given in PEM \(.*mismatch\)$/],
    ['an API key to a server without TLS', () => grpcServer(LETS_IN), API_KEY, /^MISCON.*: wrong version/],
    // The server ends it after the handshake, as one that is only starting may do.
    ['a foreign certificate', () => mutual(ofServer.cert), MUTUAL, /^UNREACH.*(ends .*|E\w+); check/],
  ])('with %s comes to nothing, and the message says what to set', async (_, server, env, words) => {
    const error = await errorOf(connect(await server(), env));
    expect(error).toMatch(words);
    expect(error).toMatch(/ TEMPORAL_TLS_/);
    expect(error).not.toMatch(/secret/);
  });

  it.each([
    ['two addresses without a server', ['127.0.0.1', '127.0.0.2'], /^UNREACHABLE.* connect ECONNREFUSED/],
    ['a host that never takes the connection', [], /^UNREACHABLE.*: the host does not answer/],
  ])('to %s is unreachable, with TLS', async (_, addresses, words) => {
    const port = await getPort();
    const found = addresses.map((address) => ({ address, family: 4 }));
    const lookup = jest.spyOn(dns, 'lookup');
    lookup.mockImplementation(((_name: string, _options: object, then: (...found: unknown[]) => void) => {
      // Until the name is found, a connection is as open as behind a firewall.
      if (found.length > 0) then(null, found);
    }) as never);
    const error = await errorOf(connect(`name.test:${port}`, { TEMPORAL_TLS: 'true' }));
    lookup.mockRestore();
    expect(error).toMatch(words);
  });

  it.each(['true', 'false'])('to a silent server is given up in time, with TLS %s', async (tls) => {
    const connecting = connect(await listening(createTcpServer()), { TEMPORAL_TLS: tls }, 200);
    expect(await errorOf(connecting)).toMatch(/^UNREACHABLE: /);
  });

  it('to a server that never answers ends with the signal of its caller', async () => {
    const caller = new AbortController();
    const reason = new Error('the caller has left');
    const silent = createTcpServer(() => caller.abort(reason));
    const env = { TEMPORAL_ADDRESS: await listening(silent) };
    const connecting = () => FollowUpClient.connect({ env, signal: caller.signal });
    await expect(connecting()).rejects.toBe(reason);
    await expect(connecting()).rejects.toBe(reason);
  });
});

// What is looked at without the error is the same as above.
it.concurrent.each<[string, () => Promise<string>, RegExp]>([
  ['is starting', () => grpcServer(14, 'starting'), /^UNREACHABLE: .*starting/],
  ['is the Web UI', () => listening(createWebServer((_, web) => web.end())), /^UNREACHABLE: .*Web UI's/],
  ['hangs up', () => hangingUp(), /^UNREACHABLE: .* as a Temporal server .*; .* TLS, set TEMPORAL_TLS=true/],
  ['denies permission', () => grpcServer(7), /^UNAUTHORIZED: .*denies access .*TEMPORAL_NAMESPACE/],
  ['refuses the key', () => grpcServer(16), /^UNAUTHORIZED: .*; check TEMPORAL_API_KEY or the TLS client/],
  ['wants TLS', () => secure(), /^MISCONFIGURED: .*wants TLS/],
])('the connection of a worker to a server that %s has an error in words too', async (_, server, words) => {
  const address = await server();
  const error: unknown = await NativeConnection.connect({ address }).catch((reason: unknown) => reason);
  const config = { address, namespace: 'agents', connection: { address }, secrets: [] };
  const { code, message } = await whyNot(error, config);
  expect(`${code}: ${message}`).toMatch(words);
});

it('a deadline of gRPC is told without the words about its own parts', () => {
  const details = 'Deadline exceeded after 0.000s,waiting for metadata filters';
  const error = Object.assign(new Error(details), { code: 4, details, metadata: {} });
  const message = 'The Temporal server does not answer in time; the same call may be repeated.';
  expect(serverError(error, { namespace: 'default' })).toMatchObject({ code: 'UNREACHABLE', message });
});
