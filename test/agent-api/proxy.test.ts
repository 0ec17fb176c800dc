import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import tls from 'node:tls';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { freePorts } from '../../dev/free-ports';
import type { AgentApiOptions } from '../../src/agent-api/client';
import { eventually } from '../harness/eventually';
import { ADDRESS, expectNoKey, JOB, LIMIT_MS, MESSAGE, WireTest } from './agent-api-under-test';
import { ConnectProxy } from './connect-proxy';
import { answer } from './misbehaving-server';
import { selfSignedCertificate } from './self-signed-certificate';

const READ = { kind: 'job', job: JOB };

const answerConnect = (status: number) => (socket: Socket) =>
  socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);

const wire = new WireTest();
const certificate = selfSignedCertificate();
const ofAnother = selfSignedCertificate([192, 0, 2, 1]);

/** Sends one message and reads the job twice, as a process does that has these certificates in NODE_EXTRA_CA_CERTS. */
async function sendAndRead(options: Partial<AgentApiOptions>, heldBackBy?: string) {
  const { createSecureContext } = tls;
  const ca = [certificate.cert, ofAnother.cert];
  const trusting = jest.spyOn(tls, 'createSecureContext');
  trusting.mockImplementation((own) => createSecureContext({ ...own, ca }));
  const client = wire.client(options);
  const outcome = await client.sendMessage(MESSAGE, { beforeFirstByte: () => heldBackBy });
  const reads = [await client.getJob(ADDRESS)];
  // The connection is free again after the answer has been handed over.
  await setImmediate();
  reads.push(await client.getJob(ADDRESS));
  trusting.mockRestore();
  return { outcome, reads };
}

describe('through a proxy', () => {
  let proxy: ConnectProxy;
  beforeEach(async () => {
    proxy = await ConnectProxy.start();
  });
  afterEach(() => proxy.stop());

  async function tlsServer() {
    const server = await wire.anotherServer(certificate);
    server.onRequest = answer(200, JOB);
    return server;
  }

  it('the message and the reads pass in tunnels; the POST has one of its own, and the reads share another', async () => {
    const server = await tlsServer();
    const url = proxy.url.replace('//', '//user:pass%20word@');
    expect(await sendAndRead({ baseUrl: server.url, proxy: { url } })).toEqual({
      outcome: { verdict: 'accepted', job: JOB },
      reads: [READ, READ],
    });
    expect(proxy.asked).toEqual([`CONNECT 127.0.0.1:${server.port}`, `CONNECT 127.0.0.1:${server.port}`]);
    const credentials = `Basic ${Buffer.from('user:pass word').toString('base64')}`;
    expect(proxy.credentials).toEqual([credentials, credentials]);
    expect(server.requests.map(({ method, connection }) => [method, connection])).toEqual([
      ['POST', 1],
      ['GET', 2],
      ['GET', 2],
    ]);
    expect(server.requests[0]?.headers).not.toHaveProperty('proxy-authorization');
  });

  it('a host of NO_PROXY, and an http base URL, are not asked for', async () => {
    const { url: baseUrl } = await tlsServer();
    wire.server.onRequest = answer(200, JOB);
    const direct = [
      { baseUrl, proxy: { url: proxy.url, noProxy: 'example.com,127.0.0.1' } },
      { proxy: { url: proxy.url } },
    ];
    const sent = { outcome: { verdict: 'accepted' }, reads: [READ, READ] };
    for (const options of direct) expect(await sendAndRead(options)).toMatchObject(sent);
    expect(proxy.asked).toEqual([]);
  });

  it('a message that is held back at its first byte is not sent, though the tunnel is there', async () => {
    const { url: baseUrl, requests } = await tlsServer();
    const { outcome } = await sendAndRead({ baseUrl, proxy: { url: proxy.url } }, 'too late');
    expect(outcome).toMatchObject({ verdict: 'not-sent', label: 'held back', message: 'too late' });
    expect(requests.map(({ method }) => method)).toEqual(['GET', 'GET']);
  });

  it('a tunnel that breaks after the message was read leaves the delivery unknown', async () => {
    const server = await tlsServer();
    server.onRequest = (socket) => socket.destroy();
    const { outcome } = await sendAndRead({ baseUrl: server.url, proxy: { url: proxy.url } });
    expect(outcome).toMatchObject({ verdict: 'unknown' });
    expect(server.requests.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });

  it('an address that the certificate of the service does not name keeps the message from being sent', async () => {
    const { url: baseUrl, requests } = await wire.anotherServer(ofAnother);
    const message = expect.stringMatching(/^ERR_TLS_CERT_ALTNAME_INVALID.*; check the host of the URL$/);
    expect(await sendAndRead({ baseUrl, proxy: { url: proxy.url } })).toMatchObject({
      outcome: { verdict: 'not-sent', repeatable: true, message },
      reads: [{ message }, { message }],
    });
    expect(requests).toHaveLength(0);
  });

  describe('nothing is sent', () => {
    async function notSent(url: string, timeoutMs = LIMIT_MS) {
      const baseUrl = `https://127.0.0.1:${wire.server.port}`;
      const client = wire.client({ baseUrl, proxy: { url }, timeoutMs });
      const outcome = await client.sendMessage(MESSAGE);
      const read = await client.getJob(ADDRESS);
      expectNoKey([outcome, read]);
      if (outcome.verdict !== 'not-sent') throw new Error(`the message is ${outcome.verdict}`);
      const { repeatable, message } = outcome;
      expect(read).toMatchObject({ kind: 'trouble', message });
      expect(wire.server.connections).toBe(0);
      return { repeatable, message };
    }

    it.each<[string, (socket: Socket) => unknown, boolean, RegExp]>([
      [
        'asks for credentials',
        answerConnect(407),
        false,
        /^PROXY_CREDENTIALS: the proxy \S+ answered CONNECT with 407;/,
      ],
      ['is busy', answerConnect(429), true, /^PROXY_ERROR: the proxy \S+ answered CONNECT with 429;/],
      ['has no route', answerConnect(503), true, /^PROXY_ERROR: the proxy \S+ answered CONNECT with 503;/],
      [
        'hangs up',
        (socket) => socket.destroy(),
        true,
        /^PROXY_ERROR: no tunnel .*: (UND_ERR_SOCKET|ECONNRESET)/,
      ],
    ])('when it %s, and it is asked once for each request', async (_how, onConnect, repeatable, words) => {
      proxy.onConnect = onConnect;
      const why = await notSent(proxy.url);
      expect(why.repeatable).toBe(repeatable);
      expect(why.message).toMatch(words);
      expect(why.message).toMatch(/; check HTTPS_PROXY$/);
      expect(proxy.asked).toHaveLength(2);
    });

    it('when it is not there', async () => {
      const [port = 0] = await freePorts(1);
      const { message } = await notSent(`http://127.0.0.1:${port}`);
      expect(message).toMatch(
        /^PROXY_ERROR: no tunnel through the proxy (127\S+): ECONNREFUSED \1; check HTTPS_PROXY$/,
      );
    });

    it('when it does not answer, and no connection to it is left', async () => {
      proxy.onConnect = () => undefined;
      // The HTTP client closes the connection by a timer of its own, which no test can hold.
      const { message } = await notSent(proxy.url, 750);
      expect(message).toMatch(/^connect timeout: .* within 250ms; check HTTPS_PROXY$/);
      await eventually('every connection to the proxy is closed', () => proxy.open === 0);
      // Fewer, if the machine stood still until the time was over.
      expect(proxy.asked.length).toBeLessThanOrEqual(2);
    });
  });
});

it('over TLS a refusal after the handshake leaves the delivery unknown', async () => {
  const server = await wire.anotherServer({ ...certificate, requestCert: true });
  // TLS 1.3 tells the client of a certificate it lacks only after the client may have begun to write.
  expect(await sendAndRead({ baseUrl: server.url })).toMatchObject({
    outcome: { verdict: 'unknown' },
  });
  expect(server.requests).toHaveLength(0);
});
