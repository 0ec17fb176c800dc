import net, { createServer, type Socket } from 'node:net';
import { afterEach, expect, it, jest } from '@jest/globals';
import { freePort } from '../../tools/lib/free-port';
import { SecretError } from '../../src/agent-api/secret-source';
import type { AgentApiOptions } from '../../src/agent-api/client';
import { holdTimers } from '../harness/hold-timers';
import { listen } from '../temporal/grpc-server';
import { JOB, JOB_KEY, KEY, MESSAGE, passTimeout, AgentApiTest, resultLabel } from './agent-api-under-test';
import { httpHead, MisbehavingServer, respondWith } from './misbehaving-server';
import { resolveTo } from './resolve-to';
import { selfSignedCertificate } from './self-signed-certificate';

const agentApiTest = new AgentApiTest();
afterEach(() => {
  jest.restoreAllMocks();
});

type OnConnection = (socket: Socket) => unknown;
type Options = Partial<AgentApiOptions>;

/** Starts an agent service whose TLS handshakes fail. */
async function tls(onConnection: OnConnection): Promise<Options> {
  holdTimers();
  const server = createServer((socket) => onConnection(socket.on('error', () => undefined)));
  return { baseUrl: `https://${await listen(server)}` };
}

/** Returns a URL with a port on which no process listens. */
const unusedUrl = async () => `http://127.0.0.1:${await freePort()}`;

/** Returns the options for an agent service behind a proxy that opens no tunnel. */
function proxied(onConnect: OnConnection = () => undefined, url = agentApiTest.server.url): Options {
  agentApiTest.server.onConnect = onConnect;
  return { baseUrl: 'https://agents.invalid', proxy: { url } };
}
const rejectTunnel = (status: number) => (socket: Socket) =>
  socket.end(httpHead(status, { 'content-length': 0 }));

/** In each case, the failure occurs before the first byte of the request, so nothing can have been sent. */
// Proves A3.
it.each<[string, RegExp, () => Options | Promise<Options>, number[]?]>([
  [
    'the port refuses the connection',
    /^ECONNREFUSED 127\.0\.0\.1:\d+$/,
    async () => ({ baseUrl: await unusedUrl() }),
  ],
  // Without a network, the resolver returns EAI_AGAIN instead of ENOTFOUND.
  [
    'the host name does not exist',
    /^(ENOTFOUND|EAI_AGAIN) a\.invalid$/,
    () => ({ baseUrl: 'http://a.invalid' }),
  ],
  [
    'the connection is reset during the TLS handshake',
    /ECONNRESET/,
    () => tls((socket) => socket.once('data', () => socket.resetAndDestroy())),
  ],
  [
    'the server does not respond to the TLS handshake',
    /^connect timeout: no connection to https:\S+ within 10s$/,
    () => tls(passTimeout),
  ],
  [
    'the certificate is not trusted',
    // Node 24 adds a hint to the message.
    /^DEPTH_ZERO_SELF_SIGNED_CERT: self-signed certificate.*; for a private certificate authority, set NODE_EXTRA_CA_CERTS on the worker/,
    async () => ({ baseUrl: (await MisbehavingServer.start(selfSignedCertificate())).url }),
  ],
  [
    'the proxy requires credentials',
    /^PROXY_CREDENTIALS: the proxy \S+ returned 407 for CONNECT; check HTTPS_PROXY$/,
    () => proxied(rejectTunnel(407)),
    [2],
  ],
  [
    'the proxy returns 503',
    /^PROXY_ERROR: .* returned 503 for CONNECT; check HTTPS_PROXY$/,
    () => proxied(rejectTunnel(503)),
    [2],
  ],
  [
    'the proxy closes the connection',
    /^PROXY_ERROR: .* did not open a tunnel: (UND_ERR_SOCKET|ECONNRESET).*; check HTTPS_PROXY$/,
    () => proxied((socket) => socket.destroy()),
    [2],
  ],
  [
    'no process listens at the address of the proxy',
    /^PROXY_ERROR: the proxy (127\S+) did not open a tunnel: ECONNREFUSED \1; check HTTPS_PROXY$/,
    async () => proxied(undefined, await unusedUrl()),
  ],
  // The HTTP client closes this connection with its own timer, which a test can't control. The test therefore uses a short timeout.
  [
    'the proxy does not respond',
    /^connect timeout: .* within 250ms; check HTTPS_PROXY$/,
    () => ({ ...proxied(), timeoutMs: 750 }),
    [0, 1, 2],
  ],
])(
  'a POST without a connection has the verdict not-sent: %s',
  async (_cause, pattern, options, requestCounts = [0]) => {
    const client = agentApiTest.client(await options());
    const beforeFirstByte = jest.fn(() => undefined);
    const outcome = await client.sendMessage(MESSAGE, { beforeFirstByte });
    const read = await client.getJob(JOB_KEY);
    expect(JSON.stringify([outcome, read])).not.toContain(KEY);
    expect(beforeFirstByte).not.toHaveBeenCalled();
    const isPermanent = pattern.source.includes('CREDENTIALS');
    const message = expect.stringMatching(pattern);
    expect(outcome).toMatchObject({ verdict: 'not-sent', reachedService: false, message });
    expect('isPermanent' in outcome).toBe(isPermanent);
    expect(read).toMatchObject({ kind: 'failure', message });
    expect('label' in outcome && resultLabel(outcome.label)).not.toBe('other');
    // The proxy receives one CONNECT for each request, or fewer if a busy machine let the timeout pass before the connection.
    await agentApiTest.server.waitUntilAllClosed();
    expect(requestCounts).toContain(agentApiTest.server.requests.length);
  },
);

// Proves W4.
it('no byte of a POST is sent if beforeFirstByte returns a reason', async () => {
  const message = 'connecting took longer than the send permission is valid';
  const outcome = await agentApiTest.client().sendMessage(MESSAGE, { beforeFirstByte: () => message });
  const notSent = { verdict: 'not-sent', reachedService: false };
  expect(outcome).toEqual({ ...notSent, label: 'held_back', message });
  await agentApiTest.server.waitUntilAllClosed();
  expect([agentApiTest.server.connections, agentApiTest.server.bytesReceived]).toEqual([1, 0]);
});

it('no request is made if a URL cannot contain the ID or the API key cannot be read', async () => {
  const sealed = { current: () => Promise.reject(new SecretError('the vault', 'is sealed')) };
  const invalid = { label: 'invalid_id', message: expect.stringContaining('a project or job ID must') };
  const noKey = { label: 'no_key', message: 'the vault is sealed' };
  for (const jobId of ['', '.', '..', 'x/../y', 'x\\.', 'caf\ufffd', 'lone \ud800 surrogate', 'job-1']) {
    const [failure, permanent] = jobId === 'job-1' ? [noKey, {}] : [invalid, { isPermanent: true }];
    const client = agentApiTest.client({ apiKey: sealed });
    const notSent = { verdict: 'not-sent', reachedService: false, ...failure, ...permanent };
    expect(await client.sendMessage({ ...MESSAGE, jobId })).toEqual(notSent);
    expect(await client.getJob({ projectId: jobId, jobId: 'job-1' })).toEqual({
      kind: 'failure',
      ...failure,
    });
  }
  expect(agentApiTest.server.connections).toBe(0);
});

// Proves A3.
it.each(['GET', 'POST'])(
  'if the first address of a host can’t be reached, a %s is sent once to the second one',
  async (method) => {
    const { server } = agentApiTest;
    server.onRequest = respondWith(200, JOB);
    resolveTo('2001:db8::1', '127.0.0.1');
    const client = agentApiTest.client({ baseUrl: `http://agents.example:${new URL(server.url).port}` });
    const outcome = method === 'GET' ? await client.getJob(JOB_KEY) : await client.sendMessage(MESSAGE);
    expect(outcome).toMatchObject({ job: JOB });
    expect(server.requests).toHaveLength(1);
  },
);

// Proves A3.
it('each address of a host has a quarter of the connect timeout, which is longer than Node’s default of 250 ms', async () => {
  const connect = jest.spyOn(net, 'connect');
  await agentApiTest.client({ baseUrl: await unusedUrl(), timeoutMs: 30_000 }).getJob(JOB_KEY);
  expect(connect.mock.calls).toMatchObject([
    [{ autoSelectFamily: true, autoSelectFamilyAttemptTimeout: 2_500 }],
  ]);
});
