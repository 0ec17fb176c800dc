import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import tls from 'node:tls';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { freePorts } from '../../dev/free-ports';
import type { AgentApiOptions } from '../../src/agent-api/client';
import { ADDRESS, expectNoKey, JOB, LIMIT_MS, MESSAGE, WireTest } from './agent-api-under-test';
import { answer, httpHead, MisbehavingServer } from './misbehaving-server';
import { selfSignedCertificate } from './self-signed-certificate';

const READ = { kind: 'job', job: JOB };

const wire = new WireTest();
const certificate = selfSignedCertificate();
const ofAnother = selfSignedCertificate([192, 0, 2, 1]);

/** Sends one message and reads the job twice, as a process does that has these certificates in NODE_EXTRA_CA_CERTS. */
async function sendAndRead(options: Partial<AgentApiOptions>) {
  const { createSecureContext } = tls;
  const ca = [certificate.cert, ofAnother.cert];
  const trusting = jest.spyOn(tls, 'createSecureContext');
  trusting.mockImplementation((own) => createSecureContext({ ...own, ca }));
  const client = wire.client(options);
  const outcome = await client.sendMessage(MESSAGE);
  const reads = [await client.getJob(ADDRESS)];
  // The connection is free again after the answer has been handed over.
  await setImmediate();
  reads.push(await client.getJob(ADDRESS));
  trusting.mockRestore();
  return { outcome, reads };
}

describe('through a proxy', () => {
  let proxy: MisbehavingServer;
  let server: MisbehavingServer;
  beforeEach(async () => {
    proxy = wire.server;
    server = await MisbehavingServer.start(certificate);
    server.onRequest = answer(200, JOB);
  });

  it('the message and the reads pass in tunnels; the POST has one of its own, and the reads share another', async () => {
    const url = proxy.url.replace('//', '//user:pass%20word@');
    expect(await sendAndRead({ baseUrl: server.url, proxy: { url } })).toEqual({
      outcome: { verdict: 'accepted', job: JOB },
      reads: [READ, READ],
    });
    const credentials = `Basic ${Buffer.from('user:pass word').toString('base64')}`;
    const connect = { method: 'CONNECT', path: server.host, headers: { 'proxy-authorization': credentials } };
    expect(proxy.requests).toMatchObject([connect, connect]);
    expect(server.requests.map(({ method, connection }) => [method, connection])).toEqual([
      ['POST', 1],
      ['GET', 2],
      ['GET', 2],
    ]);
    expect(server.requests[0]?.headers).not.toHaveProperty('proxy-authorization');
  });

  it('a host of NO_PROXY, and an http base URL, are not asked for', async () => {
    const plain = await MisbehavingServer.start();
    plain.onRequest = answer(200, JOB);
    const sent = { outcome: { verdict: 'accepted' }, reads: [READ, READ] };
    const direct = { url: proxy.url, noProxy: 'example.com,127.0.0.1' };
    expect(await sendAndRead({ baseUrl: server.url, proxy: direct })).toMatchObject(sent);
    expect(await sendAndRead({ baseUrl: plain.url, proxy: { url: proxy.url } })).toMatchObject(sent);
    expect(proxy.requests).toEqual([]);
  });

  it('an address that the certificate of the service does not name keeps the message from being sent', async () => {
    const { url: baseUrl, requests } = await MisbehavingServer.start(ofAnother);
    const message = expect.stringMatching(/^ERR_TLS_CERT_ALTNAME_INVALID.*; check the host of the URL$/);
    expect(await sendAndRead({ baseUrl, proxy: { url: proxy.url } })).toMatchObject({
      outcome: { verdict: 'not-sent', repeatable: true, message },
      reads: [{ message }, { message }],
    });
    expect(requests).toHaveLength(0);
  });

  describe('nothing is sent', () => {
    async function notSent(url: string, timeoutMs = LIMIT_MS) {
      const client = wire.client({ baseUrl: server.url, proxy: { url }, timeoutMs });
      const outcome = await client.sendMessage(MESSAGE);
      const read = await client.getJob(ADDRESS);
      expectNoKey([outcome, read]);
      expect(outcome.verdict).toBe('not-sent');
      const { repeatable, message } = outcome as { repeatable: boolean; message: string };
      expect(read).toMatchObject({ kind: 'trouble', message });
      expect(message).toMatch(/; check HTTPS_PROXY$/);
      expect(server.connections).toBe(0);
      return { repeatable, message };
    }
    const answerConnect = (status: number) => (socket: Socket) =>
      socket.end(httpHead(status, { 'content-length': 0 }));

    it.each<[string, (socket: Socket) => unknown, boolean, RegExp]>([
      [
        'asks for credentials',
        answerConnect(407),
        false,
        /^PROXY_CREDENTIALS: the proxy \S+ answered CONNECT with 407;/,
      ],
      ['has no route', answerConnect(503), true, /^PROXY_ERROR: the proxy \S+ answered CONNECT with 503;/],
      [
        'hangs up',
        (socket) => socket.destroy(),
        true,
        /^PROXY_ERROR: no tunnel .*: (UND_ERR_SOCKET|ECONNRESET)/,
      ],
    ])('when it %s, and it is asked once for each request', async (_how, onConnect, repeatable, words) => {
      proxy.onConnect = onConnect;
      expect(await notSent(proxy.url)).toEqual({ repeatable, message: expect.stringMatching(words) });
      expect(proxy.requests).toHaveLength(2);
    });

    it('when it is not there', async () => {
      const [port = 0] = await freePorts(1);
      const { message } = await notSent(`http://127.0.0.1:${port}`);
      expect(message).toMatch(/^PROXY_ERROR: no tunnel through the proxy (127\S+): ECONNREFUSED \1; /);
    });

    it('when it does not answer, and no connection to it is left', async () => {
      proxy.onConnect = () => undefined;
      // The HTTP client closes the connection by a timer of its own, which no test can hold.
      const { message } = await notSent(proxy.url, 750);
      expect(message).toMatch(/^connect timeout: .* within 250ms; /);
      await proxy.allClosed();
      // Fewer, if the machine stood still until the time was over.
      expect(proxy.requests.length).toBeLessThanOrEqual(2);
    });
  });
});

it('over TLS a refusal after the handshake leaves the delivery unknown', async () => {
  const server = await MisbehavingServer.start({ ...certificate, requestCert: true });
  // TLS 1.3 tells the client of a certificate it lacks only after the client may have begun to write.
  expect(await sendAndRead({ baseUrl: server.url })).toMatchObject({ outcome: { verdict: 'unknown' } });
  expect(server.requests).toHaveLength(0);
});
