import { setImmediate } from 'node:timers/promises';
import tls from 'node:tls';
import { afterAll, expect, it, jest } from '@jest/globals';
import type { AgentApiOptions } from '../../src/agent-api/client';
import { JOB_KEY, JOB, MESSAGE, AgentApiTest } from './agent-api-under-test';
import { respondWith, MisbehavingServer } from './misbehaving-server';
import { selfSignedCertificate } from './self-signed-certificate';

/** The server of `agentApiTest` is the proxy. */
const agentApiTest = new AgentApiTest();
const certificate = selfSignedCertificate();
const otherCertificate = selfSignedCertificate([192, 0, 2, 1]);

// The process trusts both certificates, as a process with these certificates in NODE_EXTRA_CA_CERTS does.
const { createSecureContext } = tls;
const ca = [certificate.cert, otherCertificate.cert];
const createContextSpy = jest.spyOn(tls, 'createSecureContext');
createContextSpy.mockImplementation((options) => createSecureContext({ ...options, ca }));
afterAll(() => {
  createContextSpy.mockRestore();
});

async function serviceWith(...certificates: Parameters<typeof MisbehavingServer.start>) {
  const server = await MisbehavingServer.start(...certificates);
  server.onRequest = respondWith(200, JOB);
  return server;
}

/** Sends one message and reads the job twice. @returns the outcome of the POST and the results of the two reads */
async function sendAndRead(options: Partial<AgentApiOptions>) {
  const client = agentApiTest.client(options);
  const results = [await client.sendMessage(MESSAGE), await client.getJob(JOB_KEY)];
  // undici reuses the connection one turn of the event loop after the response.
  await setImmediate();
  return [...results, await client.getJob(JOB_KEY)];
}

const READ = { kind: 'job', job: JOB };
const DONE = [{ verdict: 'accepted', job: JOB }, READ, READ];

it('through a proxy, the POST has its own CONNECT tunnel and the reads share another one; the agent service does not receive the proxy credentials', async () => {
  const server = await serviceWith(certificate);
  const url = agentApiTest.server.url.replace('//', '//user:pass%20word@');
  expect(await sendAndRead({ baseUrl: server.url, proxy: { url } })).toEqual(DONE);
  const credentials = `Basic ${Buffer.from('user:pass word').toString('base64')}`;
  const connect = { method: 'CONNECT', path: server.host, headers: { 'proxy-authorization': credentials } };
  expect(agentApiTest.server.requests).toMatchObject([connect, connect]);
  const made = server.requests.map(({ method, connection }) => `${method} on ${connection}`);
  expect(made).toEqual(['POST on 1', 'GET on 2', 'GET on 2']);
  expect(server.requests[0]?.headers).not.toHaveProperty('proxy-authorization');
});

it('the proxy is not used if NO_PROXY has the host or the base URL has the scheme http', async () => {
  const { url } = agentApiTest.server;
  const direct = { url, noProxy: 'example.com,127.0.0.1' };
  expect(await sendAndRead({ baseUrl: (await serviceWith(certificate)).url, proxy: direct })).toEqual(DONE);
  expect(await sendAndRead({ baseUrl: (await serviceWith()).url, proxy: { url } })).toEqual(DONE);
  expect(agentApiTest.server.requests).toEqual([]);
});

it('nothing is sent if the certificate of the agent service does not name the host of the base URL', async () => {
  const { url: baseUrl, requests } = await serviceWith(otherCertificate);
  const message = expect.stringMatching(/^ERR_TLS_CERT_ALTNAME_INVALID.*; check the host of the URL$/);
  const notSent = { verdict: 'not-sent', reachedService: false, message };
  const results = await sendAndRead({ baseUrl, proxy: { url: agentApiTest.server.url } });
  expect(results).toMatchObject([notSent, { message }, { message }]);
  expect(requests).toHaveLength(0);
});

it('the delivery is unknown if the server rejects a missing client certificate, because TLS 1.3 reports this after the handshake', async () => {
  const { url: baseUrl, requests } = await serviceWith({ ...certificate, requestCert: true });
  // In TLS 1.3, the client learns about the missing client certificate only after it may have started to write.
  expect(await sendAndRead({ baseUrl })).toMatchObject([{ verdict: 'unknown' }, {}, {}]);
  expect(requests).toHaveLength(0);
});
