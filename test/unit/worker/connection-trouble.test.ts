import { once } from 'node:events';
import { createServer as createWebServer } from 'node:http';
import { createServer as createGrpcServer, createSecureServer } from 'node:http2';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterAll, describe, expect, it } from '@jest/globals';
import { NativeConnection, type NativeConnectionOptions } from '@temporalio/worker';
import { freePorts } from '../../../dev/free-ports';
import { certificateSignedBy, selfSignedCertificate } from '../../wire/self-signed-certificate';
import { explainTrouble, troubleOf } from '../../../src/worker/temporal';

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

async function listening(server: Server): Promise<string> {
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A gRPC server that answers everything with one status. */
function answering(status: number, words: string): Promise<string> {
  const server = createGrpcServer();
  server.on('stream', (stream) => {
    const headers = { ':status': 200, 'content-type': 'application/grpc' };
    stream.respond({ ...headers, 'grpc-status': String(status), 'grpc-message': words }, { endStream: true });
  });
  return listening(server);
}

/** What is made of the error that a real connection gives. */
async function troubleAt(address: string, options: NativeConnectionOptions = {}) {
  const error: unknown = await NativeConnection.connect({ address, ...options }).catch(
    (reason: unknown) => reason,
  );
  return troubleOf(error, { address, namespace: 'agents', connection: { address, ...options } });
}

describe('trouble that waiting heals', () => {
  it('is a server that is not there', async () => {
    const [port = 0] = await freePorts(1);
    expect(await troubleAt(`127.0.0.1:${port}`)).toEqual({
      message: `Temporal at 127.0.0.1:${port} is not up yet (connection refused)`,
      heals: true,
    });
  });

  it('is a name that is not known', async () => {
    expect(await troubleAt('temporal.invalid:7233')).toMatchObject({
      message: expect.stringContaining('check TEMPORAL_ADDRESS'),
      heals: true,
    });
  });

  it('is a server that resets connections, is unavailable, or is no Temporal server yet', async () => {
    const resetting = await listening(
      createServer((socket) => {
        socket.destroy();
      }),
    );
    expect(await troubleAt(resetting)).toMatchObject({ heals: true });
    expect(await troubleAt(await answering(14, 'starting'))).toMatchObject({
      message: expect.stringContaining('starting'),
      heals: true,
    });
    const web = await listening(createWebServer((_, response) => response.end('hello')));
    expect(await troubleAt(web)).toMatchObject({
      message: expect.stringContaining("not the Web UI's"),
      heals: true,
    });
  });

  it('is a namespace that is not there', () => {
    const error = Object.assign(new Error('not found'), { code: 5 });
    const trouble = explainTrouble(error, { address: 'a:1', namespace: 'agents', connection: {} });
    expect(trouble).toMatchObject({
      message: expect.stringContaining('namespace create --namespace agents'),
      heals: true,
    });
  });
});

describe('trouble that waiting does not heal', () => {
  it('is a refused credential, and it does not show it', async () => {
    const trouble = await troubleAt(await answering(16, 'Request unauthorized'), {
      apiKey: 'tmprl_secret',
      tls: false,
    });
    expect(trouble).toMatchObject({
      message: expect.stringContaining('check TEMPORAL_API_KEY'),
      heals: false,
    });
    expect(trouble.message).not.toContain('tmprl_secret');
  });

  it('is a denied permission', async () => {
    expect(await troubleAt(await answering(7, 'no'))).toMatchObject({
      message: expect.stringContaining('denies access to the namespace "agents"'),
      heals: false,
    });
  });

  it('is TLS where the server has none, or a certificate that is not trusted', async () => {
    const web = await listening(createWebServer());
    expect(await troubleAt(web, { tls: true })).toMatchObject({
      message: expect.stringContaining('does not speak TLS'),
      heals: false,
    });
    const secure = await listening(createSecureServer(selfSignedCertificate()));
    expect(await troubleAt(secure, { tls: true })).toMatchObject({
      message: expect.stringMatching(/certificate .* is not trusted \(InvalidCertificate/),
      heals: false,
    });
  });

  it('is a connection without TLS to a server that wants it', async () => {
    const secure = await listening(createSecureServer(selfSignedCertificate()));
    expect(await troubleAt(secure)).toMatchObject({
      message: expect.stringMatching(/the server wants TLS; set TEMPORAL_TLS=true/),
      heals: false,
    });
  });

  it('is a client certificate that the server misses, and a key of another certificate', async () => {
    const authority = selfSignedCertificate();
    const [server, client] = [certificateSignedBy(authority), certificateSignedBy(authority)];
    const options = { ...server, requestCert: true, rejectUnauthorized: true, ca: [authority.cert] };
    const secure = await listening(createSecureServer(options));
    const serverRootCACertificate = Buffer.from(authority.cert);
    // The core tells of the alert, or only that the connection broke: it is a race.
    expect(await troubleAt(secure, { tls: { serverRootCACertificate } })).toMatchObject({
      message: expect.stringMatching(/TLS handshake.*TEMPORAL_TLS_CLIENT_CERT_\*/),
      heals: false,
    });
    const clientCertPair = { crt: Buffer.from(client.cert), key: Buffer.from(server.key) };
    expect(await troubleAt(secure, { tls: { serverRootCACertificate, clientCertPair } })).toMatchObject({
      message: expect.stringMatching(
        /failed \(InconsistentKeys\(KeyMismatch\)+: check TEMPORAL_TLS_CLIENT_CERT/,
      ),
      heals: false,
    });
  });

  it('is a client certificate that is none', async () => {
    const pair = { crt: Buffer.from('x'), key: Buffer.from('y') };
    expect(await troubleAt('127.0.0.1:9', { tls: { clientCertPair: pair } })).toMatchObject({
      message: expect.stringContaining('check TEMPORAL_TLS_CLIENT_CERT_*'),
      heals: false,
    });
  });
});
