import { setImmediate } from 'node:timers/promises';
import tls from 'node:tls';
import { afterAll, expect, it, jest } from '@jest/globals';
import type { AgentApiOptions } from '../../src/agent-api/client';
import { JOB_KEY, JOB, MESSAGE, AgentApiTest } from './agent-api-under-test';
import { respondWith, MisbehavingServer } from './misbehaving-server';
import { selfSignedCertificate } from './self-signed-certificate';

/** Its server is the proxy. */
const agentApiTest = new AgentApiTest();
const certificate = selfSignedCertificate();
const ofAnother = selfSignedCertificate([192, 0, 2, 1]);

// As in a process that has these certificates in NODE_EXTRA_CA_CERTS.
const { createSecureContext } = tls;
const ca = [certificate.cert, ofAnother.cert];
const trusting = jest.spyOn(tls, 'createSecureContext');
trusting.mockImplementation((own) => createSecureContext({ ...own, ca }));
afterAll(() => {
  trusting.mockRestore();
});

async function serviceWith(...certificates: Parameters<typeof MisbehavingServer.start>) {
  const server = await MisbehavingServer.start(...certificates);
  server.onRequest = respondWith(200, JOB);
  return server;
}

/** Sends one message and reads the job twice. @returns the outcome and the reads */
async function sendAndRead(options: Partial<AgentApiOptions>) {
  const client = agentApiTest.client(options);
  const ends = [await client.sendMessage(MESSAGE), await client.getJob(JOB_KEY)];
  // The connection is free again after the answer has been handed over.
  await setImmediate();
  return [...ends, await client.getJob(JOB_KEY)];
}

const READ = { kind: 'job', job: JOB };
const DONE = [{ verdict: 'accepted', job: JOB }, READ, READ];

it('through a proxy the message and the reads pass in tunnels; the POST has one of its own, and the reads share another', async () => {
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

it('a proxy is not asked for a host of NO_PROXY, and not for an http base URL', async () => {
  const { url } = agentApiTest.server;
  const direct = { url, noProxy: 'example.com,127.0.0.1' };
  expect(await sendAndRead({ baseUrl: (await serviceWith(certificate)).url, proxy: direct })).toEqual(DONE);
  expect(await sendAndRead({ baseUrl: (await serviceWith()).url, proxy: { url } })).toEqual(DONE);
  expect(agentApiTest.server.requests).toEqual([]);
});

it('an address that the certificate of the service does not name keeps the message from being sent', async () => {
  const { url: baseUrl, requests } = await serviceWith(ofAnother);
  const message = expect.stringMatching(/^ERR_TLS_CERT_ALTNAME_INVALID.*; check the host of the URL$/);
  const notSent = { verdict: 'not-sent', reachedService: false, message };
  const ends = await sendAndRead({ baseUrl, proxy: { url: agentApiTest.server.url } });
  expect(ends).toMatchObject([notSent, { message }, { message }]);
  expect(requests).toHaveLength(0);
});

it('over TLS a refusal after the handshake leaves the delivery unknown', async () => {
  const { url: baseUrl, requests } = await serviceWith({ ...certificate, requestCert: true });
  // TLS 1.3 tells the client of a certificate it lacks only after the client may have begun to write.
  expect(await sendAndRead({ baseUrl })).toMatchObject([{ verdict: 'unknown' }, {}, {}]);
  expect(requests).toHaveLength(0);
});
