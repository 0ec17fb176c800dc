import dns from 'node:dns';
import { createServer as createWebServer } from 'node:http';
import { createSecureServer, type SecureServerOptions } from 'node:http2';
import { createServer as createTcpServer } from 'node:net';
import { afterAll, describe, expect, it, jest } from '@jest/globals';
import { NativeConnection } from '@temporalio/worker';
import { freePorts } from '../../dev/free-ports';
import { FollowUpClient } from '../../src/client';
import type { FollowUpError } from '../../src/core/errors';
import { serverError } from '../../src/temporal/server-error';
import { whyNot } from '../../src/temporal/trouble';
import { openDeafPort } from '../harness/deaf-port';
import { selfSignedCertificate } from '../agent-api/self-signed-certificate';
import { answering, grpcServer, LETS_IN, listening } from './grpc-server';

const ofServer = selfSignedCertificate();
const ofClient = selfSignedCertificate();
const TRUST = { TEMPORAL_TLS_SERVER_CA_CERT_DATA: ofServer.cert };
const MUTUAL = {
  ...{ ...TRUST, TEMPORAL_TLS_CLIENT_CERT_DATA: ofClient.cert },
  TEMPORAL_TLS_CLIENT_KEY_DATA: ofClient.key,
};
const API_KEY = { TEMPORAL_API_KEY: 'tmprl_secret' };

const clients: FollowUpClient[] = [];
afterAll(async () => {
  for (const client of clients) await client.close();
});

function secure(options: SecureServerOptions = {}): Promise<string> {
  return listening(answering(createSecureServer({ ...ofServer, ...options }), () => LETS_IN));
}

/** A server that lets in only the client of one certificate. */
function mutual(ca: string): Promise<string> {
  return secure({ requestCert: true, rejectUnauthorized: true, ca: [ca] });
}

async function connect(
  address: string,
  env: Record<string, string> = {},
  timeout = 10_000,
): Promise<FollowUpClient> {
  const client = await FollowUpClient.connect({ env: { TEMPORAL_ADDRESS: address, ...env }, timeout });
  clients.push(client);
  return client;
}

function errorOf(work: Promise<unknown>): Promise<FollowUpError> {
  return work.then(
    () => Promise.reject(new Error('no error was thrown')),
    (error: unknown) => error as FollowUpError,
  );
}

describe('a connection', () => {
  it('over TLS with a private authority and a client certificate comes about', async () => {
    expect((await connect(await mutual(ofClient.cert), MUTUAL)).namespace).toBe('default');
  });

  it.concurrent.each<[string, string, () => Promise<string>, Record<string, string>, RegExp]>([
    [
      'an authority that is not known',
      'MISCONFIGURED',
      () => secure(),
      { TEMPORAL_TLS: 'true' },
      /\(DEPTH_ZERO_SELF_SIGNED_CERT: self-signed .*\); check .* TEMPORAL_TLS_SERVER_CA_CERT_\*/,
    ],
    [
      'a certificate for another name',
      'MISCONFIGURED',
      () => secure(),
      { ...TRUST, TEMPORAL_TLS_SERVER_NAME: 'temporal.example.com' },
      /\(ERR_TLS_CERT_ALTNAME_INVALID: .*temporal\.example\.com.*\); check .* TEMPORAL_TLS_SERVER_NAME/,
    ],
    [
      'a server that wants a client certificate',
      'MISCONFIGURED',
      () => mutual(ofClient.cert),
      TRUST,
      /\(ERR_SSL_.*_ALERT_CERTIFICATE_REQUIRED: .*\); check .* TEMPORAL_TLS_CLIENT_CERT_\*/,
    ],
    [
      'a key of another certificate',
      'MISCONFIGURED',
      () => secure(),
      { ...MUTUAL, TEMPORAL_TLS_CLIENT_KEY_DATA: ofServer.key },
      /TEMPORAL_TLS_\*: certificates and their unencrypted key must be given in PEM \(.*mismatch\)$/,
    ],
    [
      'an API key to a server without TLS',
      'MISCONFIGURED',
      () => grpcServer(LETS_IN),
      API_KEY,
      /: wrong version number\); check TEMPORAL_TLS \(.* an API key turns it on/,
    ],
    [
      'credentials that the server does not accept',
      'UNAUTHORIZED',
      () => grpcServer(16),
      { ...API_KEY, TEMPORAL_TLS: 'false' },
      /does not accept the credentials .*; check TEMPORAL_API_KEY or the TLS client certificate\.$/,
    ],
    // The two that follow look as a starting server does; TLS is named.
    [
      'a server that ends the connection after the TLS handshake',
      'UNREACHABLE',
      () => mutual(selfSignedCertificate().cert),
      MUTUAL,
      /(ends the connection|ECONNRESET|EPIPE); .* TEMPORAL_TLS_CLIENT_CERT_\*/,
    ],
    [
      'a server that ends the connection without TLS',
      'UNREACHABLE',
      () => listening(createTcpServer((socket) => socket.destroy())),
      {},
      /does not answer as a Temporal server .*; if it wants TLS, set TEMPORAL_TLS=true/,
    ],
  ])('with %s is %s, and the message says what to set', async (_what, code, server, env, words) => {
    const error = await errorOf(connect(await server(), env));
    expect(error).toMatchObject({ code, message: expect.stringMatching(words) });
    expect(error.message).not.toMatch(/secret/);
  });

  it('to a name of two addresses where nothing listens is unreachable, with TLS', async () => {
    const [port = 0] = await freePorts(1);
    const two = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
    const lookup = jest.spyOn(dns, 'lookup');
    lookup.mockImplementation(((_name: string, _options: object, then: (...found: unknown[]) => void) => {
      then(null, two);
    }) as never);
    const error = await errorOf(connect(`two.test:${port}`, { TEMPORAL_TLS: 'true' }));
    lookup.mockRestore();
    const message = expect.stringContaining('connect ECONNREFUSED 127.0.0.1');
    expect(error).toMatchObject({ code: 'UNREACHABLE', message });
  });

  it.concurrent.each(['true', 'false'])(
    'to a server that never answers is given up in time, with TLS %s',
    async (tls) => {
      const connecting = connect(await listening(createTcpServer()), { TEMPORAL_TLS: tls }, 200);
      expect(await errorOf(connecting)).toMatchObject({ code: 'UNREACHABLE' });
    },
  );

  it.concurrent('to a host that takes no connection, as behind a firewall, is unreachable', async () => {
    const deaf = await openDeafPort();
    const connecting = connect(`127.0.0.1:${deaf.port}`);
    const error = await errorOf(connecting).finally(() => deaf.close());
    const message = expect.stringContaining('the host does not answer');
    expect(error).toMatchObject({ code: 'UNREACHABLE', message });
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
it.concurrent.each<[string, () => Promise<string>, string, RegExp]>([
  ['is starting', () => grpcServer(14, 'starting'), 'UNREACHABLE', /starting/],
  ['is the Web UI', () => listening(createWebServer((_, web) => web.end())), 'UNREACHABLE', /Web UI's/],
  ['denies permission', () => grpcServer(7), 'UNAUTHORIZED', /denies access .*TEMPORAL_NAMESPACE/],
  ['wants TLS', () => secure(), 'MISCONFIGURED', /wants TLS/],
])(
  'the connection of a worker to a server that %s has an error in words too',
  async (_, server, code, words) => {
    const address = await server();
    const error: unknown = await NativeConnection.connect({ address }).catch((reason: unknown) => reason);
    const trouble = await whyNot(error, {
      address,
      namespace: 'agents',
      connection: { address },
      secrets: [],
    });
    expect(trouble).toMatchObject({ code, message: expect.stringMatching(words) });
  },
);

it('a deadline of gRPC is told without the words about its own parts', () => {
  const details = 'Deadline exceeded after 0.000s,waiting for metadata filters';
  const error = Object.assign(new Error(details), { code: 4, details, metadata: {} });
  const message = 'The Temporal server does not answer in time; the same call may be repeated.';
  expect(serverError(error, { namespace: 'default' })).toMatchObject({ code: 'UNREACHABLE', message });
});
