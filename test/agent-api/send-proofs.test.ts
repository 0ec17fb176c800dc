import { setImmediate } from 'node:timers/promises';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect, it, jest } from '@jest/globals';
import { sendHttpRequest } from '../../src/agent-api/http-request';
import { WITHHELD } from '../../src/agent-api/redaction';
import { holdTimers } from '../harness/hold-timers';
import {
  JOB_KEY,
  passTimeoutInBody,
  JOB,
  KEY,
  TIMEOUT_MS,
  MESSAGE,
  passTimeout,
  AgentApiTest,
  resultLabel,
} from './agent-api-under-test';
import { respondWith, httpHead, type OnRequest } from './misbehaving-server';

const agentApiTest = new AgentApiTest();
const IN_URL = `https://code.example/?key=${encodeURIComponent(KEY)}`;

/** Responds with an incomplete body. */
const cutOff =
  (status: number, body: string): OnRequest =>
  (socket) =>
    socket.end(httpHead(status, { 'content-length': 400 }) + body);

const after =
  (early: string): OnRequest =>
  (socket, request) => {
    socket.write(`HTTP/1.1 ${early}\r\n\r\n`);
    respondWith(200, JOB)(socket, request);
  };

/** Responds with an encoded body, although the request allows no encoding. */
const encoded =
  (status: number, encoding: string, body: Buffer): OnRequest =>
  (socket, request) => {
    socket.write(httpHead(status, { 'content-length': body.length, 'content-encoding': encoding }));
    socket.write(body);
    if (request.headers.connection === 'close') socket.end();
  };
const json = (value: unknown) => Buffer.from(JSON.stringify(value));

const huge: OnRequest = (socket) =>
  socket.write(httpHead(200, { 'content-length': 1_000_000_000 }) + ' '.repeat(1_048_577));

/** The verdict of each outcome of a POST after its connection is established (docs/guarantees.md). interpret-response.test.ts covers every status. */
// Proves A2, A12.
it.each<[string, OnRequest, 'accepted' | 'rejected' | 'not-sent' | 'unknown', RegExp]>([
  ['the job', respondWith(202, JOB), 'accepted', /^$/],
  ['the job after 103 Early Hints', after('103 Early Hints'), 'accepted', /^$/],
  // The HTTP client rejects the status 100 and does not read the rest of the response.
  ['the job after 100 Continue', after('100 Continue'), 'unknown', /^UND_ERR_SOCKET: bad response/],
  [
    '200 and the HTML page of a portal',
    respondWith(200, '<!doctype html><h1>Log in'),
    'unknown',
    /^http 200 with an HTML page/,
  ],
  ['401', respondWith(401, '<html>Log in'), 'not-sent', /^http 401: Unauthorized, with an HTML page/],
  ['429', respondWith(429, { error: 'slow down' }), 'not-sent', /^http 429: slow down$/],
  [
    '307',
    respondWith(307, '', { location: '/next' }),
    'unknown',
    /^http 307: a redirect to \/next, which is not/,
  ],
  ['200 and an incomplete body', cutOff(200, '{"id":"job-1"'), 'unknown', /^http 200 .* incomplete/],
  ['400 and an incomplete body', cutOff(400, '{"error":"pro'), 'rejected', /^http 400: Bad Request$/],
  [
    '200 and a body of more than 1 MiB',
    huge,
    'unknown',
    /^http 200 .* incomplete \(the response body has more than 1 MiB\)$/,
  ],
  ['the job, compressed with gzip', encoded(200, 'gzip', gzipSync(json(JOB))), 'accepted', /^$/],
  ['the job, compressed with br', encoded(200, 'br', brotliCompressSync(json(JOB))), 'accepted', /^$/],
  [
    '400 with a compressed error text',
    encoded(400, 'gzip', gzipSync(json({ error: 'no' }))),
    'rejected',
    /^http 400: no$/,
  ],
  [
    '200 with an encoding that cannot be decoded',
    encoded(200, 'zstd', json(JOB)),
    'unknown',
    /^http 200 with an unreadable body: the response has the encoding zstd, which the worker can't decode/,
  ],
  [
    '200 and a compressed body of more than 1 MiB',
    encoded(200, 'gzip', gzipSync(Buffer.alloc(4_000_000, ' '))),
    'unknown',
    /^http 200 .* incomplete \(the response body has more than 1 MiB\)$/,
  ],
  ['a connection reset', (socket) => socket.resetAndDestroy(), 'unknown', /^(ECONNRESET|UND_ERR_SOCKET)/],
  ['bytes that are not HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'), 'unknown', /./],
  [
    'a switch to another protocol (101)',
    after('101 Switching\r\nconnection: upgrade\r\nupgrade: x'),
    'unknown',
    /^UND_ERR_SOCKET/,
  ],
])(
  'a POST that receives %s has the expected verdict, and only one POST is made',
  async (_response, onRequest, verdict, message) => {
    agentApiTest.server.onRequest = onRequest;
    const client = agentApiTest.client();
    const outcome = await client.sendMessage(MESSAGE);
    expect(JSON.stringify(outcome)).not.toContain(KEY);
    expect(outcome.verdict).toBe(verdict);
    expect('message' in outcome ? outcome.message : '').toMatch(message);
    expect('label' in outcome && resultLabel(outcome.label)).not.toBe('other');
    expect([agentApiTest.server.requests.length, agentApiTest.server.connections]).toEqual([1, 1]);
    expect((await client.getJob(JOB_KEY)).kind).toBe(verdict === 'accepted' ? 'job' : 'failure');
  },
);

it.each([
  [200, JSON.stringify(JOB), { verdict: 'accepted', job: JOB }],
  [200, '', { verdict: 'unknown', label: 'timeout', httpStatus: 200 }],
  [404, '', { verdict: 'rejected', label: 'http_404' }],
])(
  'a POST that receives %i and the beginning %j of an endless body ends at the timeout',
  async (status, body, expected) => {
    holdTimers();
    passTimeoutInBody();
    agentApiTest.server.onRequest = (socket) => {
      socket.write(httpHead(status, { 'content-length': 1_000_000 }) + body);
      const dripping = setInterval(() => socket.write(' '), 20);
      socket.on('close', () => {
        clearInterval(dripping);
      });
    };
    expect(await agentApiTest.client().sendMessage(MESSAGE)).toMatchObject(expected);
    await agentApiTest.server.waitUntilAllClosed();
  },
);

// Proves A2.
it.each<[string, () => Promise<void>]>([
  ['rejects', () => Promise.reject(new Error('close failed'))],
  [
    'throws',
    () => {
      throw new Error('close failed');
    },
  ],
  ['never finishes', () => new Promise(() => undefined)],
])('a POST keeps its outcome if the call that closes its connection %s', async (_failure, destroy) => {
  let closes = 0;
  const unhandled = jest.fn();
  process.on('unhandledRejection', unhandled);
  const client = agentApiTest.client({
    sendHttpRequest: (dispatcher, ...rest) => {
      const close = () => {
        closes += 1;
        return destroy();
      };
      return sendHttpRequest(Object.assign(dispatcher, { destroy: close }), ...rest);
    },
  });
  for (const [status, expected] of [
    [200, { verdict: 'accepted', job: JOB }],
    [404, { verdict: 'rejected', httpStatus: 404 }],
    [429, { verdict: 'not-sent', reachedService: true }],
  ] as const) {
    agentApiTest.server.onRequest = respondWith(status, JOB);
    expect(await client.sendMessage(MESSAGE)).toMatchObject(expected);
  }
  await setImmediate();
  process.off('unhandledRejection', unhandled);
  // An unhandled rejection would end the worker process.
  expect(unhandled).not.toHaveBeenCalled();
  expect(closes).toBe(3);
});

// Proves K3.
it.each<[string, OnRequest]>([
  ['an error text', respondWith(401, { error: `bad ${KEY}, ${encodeURIComponent(KEY)}\r\nX: "${KEY}"` })],
  ['an incomplete error text that ends within the key', cutOff(401, `bad ${KEY.slice(0, 20)}`)],
  ['a redirect', respondWith(307, '', { location: IN_URL })],
  ['a compressed error text', encoded(401, 'gzip', gzipSync(json({ error: `bad ${KEY}` })))],
  ['the name of an encoding', encoded(401, `x${KEY}`, json({ error: 'bad' }))],
  ['the id of another job', respondWith(200, { id: KEY, status: 'x' })],
  ['the fields of a job', respondWith(200, { ...JOB, status: KEY, prLink: IN_URL })],
])(
  'the outcomes of a POST and a read contain no part of the key if the response repeats the key in %s',
  async (where, onRequest) => {
    agentApiTest.server.onRequest = onRequest;
    const client = agentApiTest.client();
    const outcomes = [await client.sendMessage(MESSAGE), await client.getJob(JOB_KEY)];
    expect(JSON.stringify(outcomes)).not.toMatch(/9f|8e|7d|6c|5b4a/i);
    expect(JSON.stringify(outcomes).includes(WITHHELD)).toBe(!where.includes('incomplete'));
  },
);

it('a POST is accepted if the response has the ID of the job, even if this ID contains a part of the key', async () => {
  const job = { ...JOB, id: `job-${KEY.slice(5)}` };
  agentApiTest.server.onRequest = respondWith(200, job);
  const outcome = await agentApiTest.client().sendMessage({ ...MESSAGE, jobId: job.id });
  expect(outcome).toEqual({ verdict: 'accepted', job });
});

it('a POST without a response within the timeout has the verdict unknown, and a read without a response fails', async () => {
  holdTimers();
  agentApiTest.server.onRequest = passTimeout;
  const client = agentApiTest.client({ timeoutMs: 2 * TIMEOUT_MS });
  const limits = { timeoutMs: TIMEOUT_MS };
  const failure = {
    label: 'timeout',
    message: `timeout: no response from ${agentApiTest.server.url} within 1m`,
  };
  expect(await client.sendMessage(MESSAGE, limits)).toEqual({ verdict: 'unknown', ...failure });
  expect(await client.getJob(JOB_KEY, limits)).toEqual({ kind: 'failure', ...failure });
  expect(agentApiTest.server.requests).toHaveLength(2);
  await agentApiTest.server.waitUntilAllClosed();
});
