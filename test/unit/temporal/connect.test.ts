import { once } from 'node:events';
import { createServer as createWebServer } from 'node:http';
import {
  createSecureServer,
  createServer as createGrpcServer,
  type Http2SecureServer,
  type Http2Server,
  type SecureServerOptions,
} from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { freePorts } from '../../../dev/free-ports';
import { FollowUpClient } from '../../../src/client';
import { FollowUpError } from '../../../src/core/errors';
import { transportError } from '../../../src/temporal/transport-errors';
import { certificateSignedBy, selfSignedCertificate } from '../../wire/self-signed-certificate';

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Hello', requestId: 'r' };

const authority = selfSignedCertificate();
const ofServer = certificateSignedBy(authority);
const ofClient = certificateSignedBy(authority);
const TRUST = { TEMPORAL_TLS_SERVER_CA_CERT_DATA: authority.cert };

const servers: Server[] = [];
const clients: FollowUpClient[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  for (const server of servers.splice(0)) server.close();
});

async function listening(server: Server | Http2Server | Http2SecureServer): Promise<string> {
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Lets everybody in (UNIMPLEMENTED is how a very old server answers), and answers everything else with one status. */
function answering<T extends Http2Server | Http2SecureServer>(server: T, entry = 12, otherwise = entry): T {
  server.on('stream', (stream, { ':path': path }) => {
    const status = path?.endsWith('/GetSystemInfo') ? entry : otherwise;
    const headers = { ':status': 200, 'content-type': 'application/grpc' };
    stream.respond({ ...headers, 'grpc-status': String(status), 'grpc-message': 'no' }, { endStream: true });
  });
  return server;
}

function secure(options: SecureServerOptions = {}): Promise<string> {
  return listening(answering(createSecureServer({ ...ofServer, ...options })));
}

async function connect(address: string, env: Record<string, string> = {}): Promise<FollowUpClient> {
  const client = await FollowUpClient.connect({
    env: { TEMPORAL_ADDRESS: address, ...env },
    timeoutMs: 1_500,
  });
  clients.push(client);
  return client;
}

async function errorOf(work: Promise<unknown>): Promise<FollowUpError> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof FollowUpError) return error;
  throw new Error('no FollowUpError was thrown', { cause: error });
}

describe('a connection', () => {
  it('over TLS with a private authority and a client certificate comes about', async () => {
    const address = await secure({ requestCert: true, ca: [authority.cert] });
    const client = await connect(address, {
      ...TRUST,
      TEMPORAL_TLS_CLIENT_CERT_DATA: ofClient.cert,
      TEMPORAL_TLS_CLIENT_KEY_DATA: ofClient.key,
    });
    expect(client.namespace).toBe('default');
  });

  it.each<[string, () => Promise<string>, Record<string, string>, RegExp]>([
    [
      'an authority that is not known',
      () => secure(),
      { TEMPORAL_TLS: 'true' },
      /certificate is not trusted \(\w+\); give .* TEMPORAL_TLS_SERVER_CA_CERT_PATH$/,
    ],
    [
      'a certificate for another name',
      () => secure(),
      { ...TRUST, TEMPORAL_TLS_SERVER_NAME: 'temporal.example.com' },
      /certificate is for another name .*; check TEMPORAL_ADDRESS, or set TEMPORAL_TLS_SERVER_NAME$/,
    ],
    [
      'a server that wants a client certificate',
      () => secure({ requestCert: true, rejectUnauthorized: true, ca: [authority.cert] }),
      TRUST,
      /refuses the TLS handshake \(.*\); it may want a client certificate, .* TEMPORAL_TLS_CLIENT_CERT_\*/,
    ],
    [
      'a key of another certificate',
      () => secure(),
      { ...TRUST, TEMPORAL_TLS_CLIENT_CERT_DATA: ofClient.cert, TEMPORAL_TLS_CLIENT_KEY_DATA: ofServer.key },
      /TEMPORAL_TLS_CLIENT_KEY_\*: the key is not the one of the certificate$/,
    ],
    [
      'a client certificate that is not PEM',
      () => secure(),
      { ...TRUST, TEMPORAL_TLS_CLIENT_CERT_DATA: 'x', TEMPORAL_TLS_CLIENT_KEY_DATA: ofClient.key },
      /TEMPORAL_TLS_CLIENT_CERT_\*: is not a certificate in PEM/,
    ],
    [
      'a private key that is not PEM',
      () => secure(),
      { ...TRUST, TEMPORAL_TLS_CLIENT_CERT_DATA: ofClient.cert, TEMPORAL_TLS_CLIENT_KEY_DATA: 'secret-key' },
      /TEMPORAL_TLS_CLIENT_KEY_\*: is not an unencrypted private key in PEM/,
    ],
    [
      'an authority that is not PEM',
      () => secure(),
      { TEMPORAL_TLS_SERVER_CA_CERT_DATA: 'x' },
      /TEMPORAL_TLS_SERVER_CA_CERT_\*: is not a certificate in PEM/,
    ],
    [
      'TLS to a server without it',
      () => listening(answering(createGrpcServer())),
      { TEMPORAL_TLS: 'true' },
      /speaks no TLS; unset TEMPORAL_TLS\*/,
    ],
    [
      'an API key to a server without TLS',
      () => listening(answering(createGrpcServer())),
      { TEMPORAL_API_KEY: 'tmprl_secret' },
      /speaks no TLS; .*TEMPORAL_TLS=false if an API key turns it on/,
    ],
    [
      'TLS to a web server',
      () => listening(createHttpsServer(ofServer)),
      TRUST,
      /speaks TLS, but no HTTP\/2, so it is not Temporal; check TEMPORAL_ADDRESS$/,
    ],
    ['no TLS to a server that wants it', () => secure(), {}, /the server wants TLS; set TEMPORAL_TLS=true/],
  ])('with %s is misconfigured, and the message says what to set', async (_what, server, env, words) => {
    const error = await errorOf(connect(await server(), env));
    expect(error).toMatchObject({ code: 'MISCONFIGURED', message: expect.stringMatching(words) });
    expect(error.message).not.toMatch(/secret/);
  });

  it.each([
    [16, /does not accept the credentials .*; check TEMPORAL_API_KEY or the TLS client certificate\.$/],
    [7, /denies access .*; check TEMPORAL_NAMESPACE and the permissions of the credentials\.$/],
  ])(
    'whose credentials the server refuses (gRPC %i) is unauthorized, not unreachable',
    async (status, words) => {
      const env = { TEMPORAL_API_KEY: 'tmprl_secret', TEMPORAL_TLS: 'false' };
      const error = await errorOf(connect(await listening(answering(createGrpcServer(), status)), env));
      expect(error).toMatchObject({ code: 'UNAUTHORIZED', message: expect.stringMatching(words) });
      expect(error.message).not.toContain('tmprl_secret');
    },
  );

  it('to a port where nothing listens is unreachable', async () => {
    const [port = 0] = await freePorts(1);
    expect(await errorOf(connect(`127.0.0.1:${port}`))).toMatchObject({
      code: 'UNREACHABLE',
      message: `Can't reach Temporal at 127.0.0.1:${port}: nothing listens there (ECONNREFUSED).`,
    });
  });

  it('to a server that is not Temporal’s is unreachable', async () => {
    const address = await listening(createWebServer((_request, response) => response.end('hello')));
    expect(await errorOf(connect(address))).toMatchObject({ code: 'UNREACHABLE' });
  });
});

describe('a connection that the server ends at once', () => {
  it.each<[string, () => Promise<string>, Record<string, string>, RegExp]>([
    [
      'after the TLS handshake',
      () => secure({ requestCert: true, rejectUnauthorized: true, ca: [selfSignedCertificate().cert] }),
      { ...TRUST, TEMPORAL_TLS_CLIENT_CERT_DATA: ofClient.cert, TEMPORAL_TLS_CLIENT_KEY_DATA: ofClient.key },
      /ends the connection after the TLS handshake; .* TEMPORAL_TLS_CLIENT_CERT_\*/,
    ],
    [
      'without TLS',
      () => listening(createTcpServer((socket) => socket.destroy())),
      {},
      /ends the connection at once; if it wants TLS, set TEMPORAL_TLS=true/,
    ],
  ])(
    '%s is unreachable, because a starting server looks the same; TLS is named',
    async (_when, server, env, words) => {
      const error = await errorOf(connect(await server(), env));
      expect(error).toMatchObject({ code: 'UNREACHABLE', message: expect.stringMatching(words) });
    },
  );
});

describe('a start', () => {
  it('with credentials that are refused meanwhile is unauthorized', async () => {
    const client = await connect(await listening(answering(createGrpcServer(), 12, 16)));
    expect(await errorOf(client.start(REQUEST))).toMatchObject({ code: 'UNAUTHORIZED' });
  });

  it.each([
    [14, 'UNREACHABLE'],
    [4, 'UNREACHABLE'],
    [13, 'UNREACHABLE'],
    [16, 'UNAUTHORIZED'],
    [7, 'UNAUTHORIZED'],
    [5, undefined],
    [3, undefined],
  ])('that ends with gRPC %i has the code %s', (code, expected) => {
    const error = Object.assign(new Error('no'), { code, details: 'no', metadata: {} });
    expect(transportError(new Error('Failed to start', { cause: error }))?.code).toBe(expected);
  });
});
