import dns from 'node:dns';
import { createSecureServer, type SecureServerOptions } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';
import { afterAll, describe, expect, it, jest } from '@jest/globals';
import { freePorts } from '../../dev/free-ports';
import { FollowUpClient } from '../../src/client';
import { FollowUpError } from '../../src/core/errors';
import { serverError } from '../../src/temporal/server-error';
import { openDeafPort } from '../harness/deaf-port';
import { certificateSignedBy, selfSignedCertificate } from '../agent-api/self-signed-certificate';
import { answering, grpcServer, LETS_IN, listening } from './grpc-server';

const authority = selfSignedCertificate();
const ofServer = certificateSignedBy(authority);
const ofClient = certificateSignedBy(authority);
const TRUST = { TEMPORAL_TLS_SERVER_CA_CERT_DATA: authority.cert };
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

async function connect(
  address: string,
  env: Record<string, string> = {},
  timeout = 10_000,
): Promise<FollowUpClient> {
  const client = await FollowUpClient.connect({ env: { TEMPORAL_ADDRESS: address, ...env }, timeout });
  clients.push(client);
  return client;
}

async function errorOf(work: Promise<unknown>): Promise<FollowUpError> {
  const error: unknown = await work.catch((reason: unknown) => reason);
  if (error instanceof FollowUpError) return error;
  throw new Error('no FollowUpError was thrown', { cause: error });
}

describe('a connection', () => {
  it('over TLS with a private authority and a client certificate comes about', async () => {
    const address = await secure({ requestCert: true, ca: [authority.cert] });
    expect((await connect(address, MUTUAL)).namespace).toBe('default');
  });

  it.concurrent.each<[string, string, () => Promise<string>, Record<string, string>, RegExp]>([
    [
      'an authority that is not known',
      'MISCONFIGURED',
      () => secure(),
      { TEMPORAL_TLS: 'true' },
      /\(UNABLE_TO_VERIFY_LEAF_SIGNATURE: unable to verify .*\); check .* TEMPORAL_TLS_SERVER_CA_CERT_\*/,
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
      () => secure({ requestCert: true, rejectUnauthorized: true, ca: [authority.cert] }),
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
      'TLS to a web server',
      'MISCONFIGURED',
      () => listening(createHttpsServer(ofServer)),
      TRUST,
      /no application protocol\); check TEMPORAL_TLS/,
    ],
    [
      'no TLS to a server that wants it',
      'MISCONFIGURED',
      () => secure(),
      {},
      /the server wants TLS; set TEMPORAL_TLS=true/,
    ],
    [
      'credentials that the server does not accept',
      'UNAUTHORIZED',
      () => grpcServer(16),
      { ...API_KEY, TEMPORAL_TLS: 'false' },
      /does not accept the credentials .*; check TEMPORAL_API_KEY or the TLS client certificate\.$/,
    ],
    [
      'credentials that may not do it',
      'UNAUTHORIZED',
      () => grpcServer(7),
      { ...API_KEY, TEMPORAL_TLS: 'false' },
      /denies access .*; check TEMPORAL_NAMESPACE and the permissions of the credentials\.$/,
    ],
    // The two that follow look as a starting server does; TLS is named.
    [
      'a server that ends the connection after the TLS handshake',
      'UNREACHABLE',
      () => secure({ requestCert: true, rejectUnauthorized: true, ca: [selfSignedCertificate().cert] }),
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
    // Only the server's own word comes before the time-out.
    const timeout = code === 'UNAUTHORIZED' ? 10_000 : 500;
    const error = await errorOf(connect(await server(), env, timeout));
    expect(error).toMatchObject({ code, message: expect.stringMatching(words) });
    expect(error.message).not.toMatch(/secret/);
  });

  it('to a name of two addresses where nothing listens is unreachable, with TLS', async () => {
    const [port = 0] = await freePorts(1);
    const two = [
      { address: '127.0.0.1', family: 4 },
      { address: '127.0.0.2', family: 4 },
    ];
    const lookup = jest.spyOn(dns, 'lookup');
    lookup.mockImplementation(((_name: string, _options: object, then: (...found: unknown[]) => void) => {
      then(null, two);
    }) as never);
    const message = expect.stringContaining('connect ECONNREFUSED 127.0.0.1');
    const connecting = connect(`two.test:${port}`, { TEMPORAL_TLS: 'true' }, 500);
    const error = await errorOf(connecting).finally(() => {
      lookup.mockRestore();
    });
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
    const connecting = connect(`127.0.0.1:${deaf.port}`, {}, 500);
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

it('a deadline of gRPC is told without the words about its own parts', () => {
  const details = 'Deadline exceeded after 0.000s,waiting for metadata filters';
  const error = Object.assign(new Error(details), { code: 4, details, metadata: {} });
  const message = 'The Temporal server does not answer in time; the same call may be repeated.';
  expect(serverError(error, { namespace: 'default' })).toMatchObject({ code: 'UNREACHABLE', message });
});
