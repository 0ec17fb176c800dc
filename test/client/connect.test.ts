import { createServer as createWebServer } from 'node:http';
import { createSecureServer, createServer, type SecureServerOptions } from 'node:http2';
import { createServer as createTcpServer } from 'node:net';
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { NativeConnection } from '@temporalio/worker';
import { freePort } from '../../tools/lib/free-port';
import { FollowUpClient } from '../../src/entries/client';
import type { FollowUpError } from '../../src/contract/follow-up-error';
import { connectionError, serverError } from '../../src/temporal/server-error';
import { selfSignedCertificate } from '../agent-api/self-signed-certificate';
import { respondWithGrpcStatus, grpcServer, UNIMPLEMENTED, listen } from '../temporal/grpc-server';

const serverCertificate = selfSignedCertificate();
/** The client's certificate and key. */
const { cert, key } = selfSignedCertificate();
const TRUST = { TEMPORAL_TLS_SERVER_CA_CERT_DATA: serverCertificate.cert };
const MUTUAL = { ...TRUST, TEMPORAL_TLS_CLIENT_CERT_DATA: cert, TEMPORAL_TLS_CLIENT_KEY_DATA: key };
const OTHER_NAME = { ...TRUST, TEMPORAL_TLS_SERVER_NAME: 'temporal.example.com' };
const OTHER_KEY = { ...MUTUAL, TEMPORAL_TLS_CLIENT_KEY_DATA: serverCertificate.key };
const API_KEY = { TEMPORAL_API_KEY: 'tmprl_secret' };

function secure(options: SecureServerOptions = {}): Promise<string> {
  return listen(
    respondWithGrpcStatus(createSecureServer({ ...serverCertificate, ...options }), () => UNIMPLEMENTED),
  );
}

const notFound = () => createServer((_request, response) => response.writeHead(404).end('no such route'));

const hangingUp = () => listen(createTcpServer((socket) => socket.destroy()));

/** Starts a server that accepts only clients whose certificate this authority has signed. */
function mutual(ca: string): Promise<string> {
  return secure({ requestCert: true, rejectUnauthorized: true, ca: [ca] });
}

function connect(address: string, env: Record<string, string> = {}, timeout = 10_000) {
  return FollowUpClient.connect({ env: { TEMPORAL_ADDRESS: address, ...env }, timeout });
}

/** Returns the code and message of the error. */
function errorOf(work: Promise<unknown>): Promise<unknown> {
  const format = ({ code, message }: FollowUpError) => `${code}: ${message}`;
  return work.catch((error: unknown) => format(error as FollowUpError));
}

describe('a connection', () => {
  it('over TLS with a private authority and a client certificate succeeds', async () => {
    const client = await connect(await mutual(cert), MUTUAL);
    expect(client.namespace).toBe('default');
    await client.close();
  });

  it.concurrent.each<[string, () => Promise<string>, Record<string, string>, RegExp]>([
    ['an unknown authority', () => secure(), { TEMPORAL_TLS: 'true' }, /^UNREACH.*self-signed certificate/],
    ['a certificate for another name', () => secure(), OTHER_NAME, /^UNREACH.*does not match certificate/],
    ['no certificate if one is required', () => mutual(cert), TRUST, /^UNREACH.*certificate required/],
    [
      'a key of another certificate',
      () => secure(),
      OTHER_KEY,
      /^INVALID_CONFIG.* key in PEM format \(.*mismatch\)$/,
    ],
    ['an API key and no TLS', () => grpcServer(UNIMPLEMENTED), API_KEY, /^UNREACH.*wrong version number/],
    ['a client certificate of another authority', () => mutual(serverCertificate.cert), MUTUAL, /^UNREACH/],
    ['a port of a web server', () => listen(createWebServer()), {}, /^UNREACH.*Protocol error/],
    ['a gateway that returns 404', () => listen(notFound()), {}, /^UNREACH.*HTTP status code 404/],
    ['a server that requires TLS, without TLS', () => secure(), {}, /^UNREACH.*TEMPORAL_TLS \(true or false/],
  ])('with %s fails with the reason and the variables to check', async (_, server, env, pattern) => {
    const error = await errorOf(connect(await server(), env));
    expect(error).toMatch(pattern);
    expect(error).toMatch(/ TEMPORAL_TLS_/);
    expect(error).not.toMatch(/secret/);
  });

  it('to a server that repeats the API key in its error fails without showing the key', async () => {
    const apiKey = { TEMPORAL_API_KEY: 'tmprl_secret_of_the_team', TEMPORAL_TLS: 'false' };
    const failing = respondWithGrpcStatus(createServer(), () => 16, 'tmprl_secret_of_the_team has expired');
    const error: unknown = await connect(await listen(failing), apiKey).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: 'UNAUTHORIZED',
      message: expect.stringContaining('[redacted] has expired'),
    });
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('tmprl_secret');
  });

  it('to a server that is unavailable for a moment is retried', async () => {
    let calls = 0;
    const server = respondWithGrpcStatus(createServer(), () => (++calls === 1 ? 14 : UNIMPLEMENTED));
    const client = await connect(await listen(server));
    expect(calls).toBe(2);
    await client.close();
  });

  it('to a port on which no server listens fails with the address', async () => {
    const port = await freePort();
    const error = await errorOf(connect(`127.0.0.1:${port}`, { TEMPORAL_TLS: 'true' }));
    expect(error).toMatch(
      /^UNREACHABLE: Can't reach the Temporal server at [\d.:]+: No connection .*: connect ECONNREFUSED [\d.:]+\. Check TEMPORAL_ADDRESS/,
    );
  });

  it.each(['true', 'false'])('to a server that does not respond times out, with TLS %s', async (tls) => {
    const connecting = connect(await listen(createTcpServer()), { TEMPORAL_TLS: tls }, 200);
    expect(await errorOf(connecting)).toMatch(/^UNREACHABLE: .*: it did not respond in time\. Check /);
  });

  it('to a server that never responds ends when the caller aborts its signal', async () => {
    const caller = new AbortController();
    const reason = new Error('the caller has left');
    const silent = createTcpServer(() => caller.abort(reason));
    const env = { TEMPORAL_ADDRESS: await listen(silent) };
    const connecting = () => FollowUpClient.connect({ env, signal: caller.signal });
    await expect(connecting()).rejects.toBe(reason);
    await expect(connecting()).rejects.toBe(reason);
  });
});

it.concurrent.each<[string, () => Promise<string>, RegExp]>([
  ['is starting', () => grpcServer(14, 'starting'), /^UNREACHABLE: .*starting/],
  ['is a web server', () => listen(createWebServer((_, web) => web.end())), /^UNREACHABLE: .*Web UI's/],
  ['closes the connection', () => hangingUp(), /^UNREACHABLE: .*TEMPORAL_TLS/],
  ['denies permission', () => grpcServer(7), /^UNAUTHORIZED: .*denies access .*TEMPORAL_NAMESPACE/],
  ['rejects the key', () => grpcServer(16), /^UNAUTHORIZED: .*; check TEMPORAL_API_KEY or the TLS client/],
  ['requires TLS', () => secure(), /^UNREACHABLE: .*TEMPORAL_TLS/],
])(
  'a worker’s connection to a server that %s fails with a code and the reason',
  async (_, server, pattern) => {
    const address = await server();
    const error: unknown = await NativeConnection.connect({ address }).catch((reason: unknown) => reason);
    const { code, message } = connectionError(error, { address, namespace: 'agents' });
    expect(`${code}: ${message}`).toMatch(pattern);
  },
);

it('a gRPC deadline is reported without the details of gRPC', () => {
  const details = 'Deadline exceeded after 0.000s,waiting for metadata filters';
  const error = Object.assign(new Error(details), { code: 4, details, metadata: {} });
  const message = 'The Temporal server did not respond in time; repeat the call.';
  expect(serverError(error, { namespace: 'default' })).toMatchObject({ code: 'UNREACHABLE', message });
});
