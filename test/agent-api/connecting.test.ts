import { createServer, type Socket } from 'node:net';
import { expect, it, jest } from '@jest/globals';
import getPort from 'get-port';
import { ApiKeyError } from '../../src/agent-api/api-key';
import type { AgentApiOptions } from '../../src/agent-api/client';
import { holdTimers } from '../harness/hold-timers';
import { listen } from '../temporal/grpc-server';
import { JOB_KEY, KEY, MESSAGE, passTimeout, AgentApiTest } from './agent-api-under-test';
import { httpHead, MisbehavingServer } from './misbehaving-server';
import { selfSignedCertificate } from './self-signed-certificate';

const agentApiTest = new AgentApiTest();

type OnConnection = (socket: Socket) => unknown;
type Options = Partial<AgentApiOptions>;

/** A service whose TLS handshakes fail. */
async function tls(onConnection: OnConnection): Promise<Options> {
  holdTimers();
  const server = createServer((socket) => onConnection(socket.on('error', () => undefined)));
  return { baseUrl: `https://${await listen(server)}` };
}

/** Where nothing listens. */
const nowhere = async () => `http://127.0.0.1:${await getPort()}`;

/** A service behind a proxy that makes no tunnel. */
function proxied(onConnect: OnConnection = () => undefined, url = agentApiTest.server.url): Options {
  agentApiTest.server.onConnect = onConnect;
  return { baseUrl: 'https://agents.invalid', proxy: { url } };
}
const refusing = (status: number) => (socket: Socket) =>
  socket.end(httpHead(status, { 'content-length': 0 }));

/** Before the first byte of the request: nothing can have been sent, whatever went wrong. */
// Proves A3.
it.each<[string, RegExp, () => Options | Promise<Options>, number[]?]>([
  ['the port refuses it', /^ECONNREFUSED 127\.0\.0\.1:\d+$/, async () => ({ baseUrl: await nowhere() })],
  // Without a network the resolver can only say "try again".
  ['nobody knows the host', /^(ENOTFOUND|EAI_AGAIN) a\.invalid$/, () => ({ baseUrl: 'http://a.invalid' })],
  ['TLS is reset', /ECONNRESET/, () => tls((socket) => socket.once('data', () => socket.resetAndDestroy()))],
  [
    'TLS is never answered',
    /^connect timeout: no connection to https:\S+ within 10s$/,
    () => tls(passTimeout),
  ],
  [
    'the certificate is not trusted',
    // Node 24 adds a hint to the words.
    /^DEPTH_ZERO_SELF_SIGNED_CERT: self-signed certificate.*; for a private authority, start the worker with NODE_EXTRA_CA_CERTS/,
    async () => ({ baseUrl: (await MisbehavingServer.start(selfSignedCertificate())).url }),
  ],
  [
    'the proxy asks for credentials',
    /^PROXY_CREDENTIALS: the proxy \S+ answered CONNECT with 407; check HTTPS_PROXY$/,
    () => proxied(refusing(407)),
    [2],
  ],
  [
    'the proxy has no route',
    /^PROXY_ERROR: .* CONNECT with 503; check HTTPS_PROXY$/,
    () => proxied(refusing(503)),
    [2],
  ],
  [
    'the proxy hangs up',
    /^PROXY_ERROR: no tunnel .*: (UND_ERR_SOCKET|ECONNRESET).*; check HTTPS_PROXY$/,
    () => proxied((socket) => socket.destroy()),
    [2],
  ],
  [
    'the proxy is not there',
    /^PROXY_ERROR: no tunnel through the proxy (127\S+): ECONNREFUSED \1; check HTTPS_PROXY$/,
    async () => proxied(undefined, await nowhere()),
  ],
  // The HTTP client closes the connection by a timer of its own, which no test can hold.
  [
    'the proxy does not answer',
    /^connect timeout: .* within 250ms; check HTTPS_PROXY$/,
    () => ({ ...proxied(), timeoutMs: 750 }),
    [0, 1, 2],
  ],
])('a POST that got no connection, because %s, was not sent', async (_why, words, options, asked = [0]) => {
  const client = agentApiTest.client(await options());
  const beforeFirstByte = jest.fn(() => undefined);
  const outcome = await client.sendMessage(MESSAGE, { beforeFirstByte });
  const read = await client.getJob(JOB_KEY);
  expect(JSON.stringify([outcome, read])).not.toContain(KEY);
  expect(beforeFirstByte).not.toHaveBeenCalled();
  const isPermanent = words.source.includes('CREDENTIALS');
  const message = expect.stringMatching(words);
  expect(outcome).toMatchObject({ verdict: 'not-sent', reachedService: false, message });
  expect('isPermanent' in outcome).toBe(isPermanent);
  expect(read).toMatchObject({ kind: 'failure', message });
  // A proxy is asked once for each request: fewer, if the machine stood still until the time was over.
  await agentApiTest.server.waitUntilAllClosed();
  expect(asked).toContain(agentApiTest.server.requests.length);
});

// Proves W4.
it('a POST is kept back, every byte of it, by what stands against it at its first byte', async () => {
  const message = 'the worker was suspended while it was connecting';
  const outcome = await agentApiTest.client().sendMessage(MESSAGE, { beforeFirstByte: () => message });
  const notSent = { verdict: 'not-sent', reachedService: false };
  expect(outcome).toEqual({ ...notSent, label: 'held_back', message });
  await agentApiTest.server.waitUntilAllClosed();
  expect([agentApiTest.server.connections, agentApiTest.server.bytesReceived]).toEqual([1, 0]);
});

it('nothing is asked where no URL can name the job, or no key can be had', async () => {
  const sealed = { current: () => Promise.reject(new ApiKeyError('the vault', 'is sealed')) };
  const invalid = { label: 'invalid_id', message: expect.stringContaining('a project or job ID must') };
  const noKey = { label: 'no_key', message: 'the vault is sealed' };
  for (const jobId of ['', '.', '..', 'x/../y', 'x\\.', 'caf\ufffd', 'lone \ud800 surrogate', 'job-1']) {
    const [why, permanent] = jobId === 'job-1' ? [noKey, {}] : [invalid, { isPermanent: true }];
    const client = agentApiTest.client({ apiKey: sealed });
    const notSent = { verdict: 'not-sent', reachedService: false, ...why, ...permanent };
    expect(await client.sendMessage({ ...MESSAGE, jobId })).toEqual(notSent);
    expect(await client.getJob({ projectId: jobId, jobId: 'job-1' })).toEqual({ kind: 'failure', ...why });
  }
  expect(agentApiTest.server.connections).toBe(0);
});
