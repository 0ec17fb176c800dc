import { describe, expect, it } from '@jest/globals';
import { keyFromText } from '../../src/agent-api/api-key';
import { holdTimers } from '../harness/hold-timers';
import {
  ADDRESS,
  endInTheBody,
  expectNoKey,
  JOB,
  KEY,
  LIMIT_MS,
  MESSAGE,
  outOfTime,
  WireTest,
} from './agent-api-under-test';
import { answer, httpHead, type OnRequest } from './misbehaving-server';

const wire = new WireTest();
/** A key with characters that are spelled in many ways. */
const SPELLED = 'agnt_9f/8e+7d&6c=5b4a3928';

const UNASKED = {
  label: 'UND_ERR_SOCKET',
  message: expect.stringMatching(/the service, .* answered 100 Continue without being asked/),
};

/** An answer whose body breaks off. */
const cutOff =
  (status: number, body: string): OnRequest =>
  (socket) =>
    socket.end(httpHead(status, { 'content-length': 400 }) + body);

/** What a POST proves once its connection was made: one test for each row of docs/guarantees.md. */
describe('a POST that was answered', () => {
  async function sendTo(onRequest: OnRequest) {
    wire.server.onRequest = onRequest;
    const outcome = await wire.client().sendMessage(MESSAGE);
    expectNoKey(outcome);
    expect(wire.server.requests).toHaveLength(1);
    return outcome;
  }

  // answers.test.ts has every status, and the simulation each verdict.
  it.each<[string, OnRequest, object]>([
    ['202 and the job itself is accepted', answer(202, JOB), { verdict: 'accepted', job: JOB }],
    [
      '200 and the job of another id is unknown',
      answer(200, { ...JOB, id: 'job-2' }),
      { verdict: 'unknown', message: 'http 200 with the job "job-2", which was not asked for' },
    ],
    [
      'a portal’s HTML page is unknown',
      answer(200, '<!doctype html><h1>Log in</h1>'),
      { verdict: 'unknown', label: 'not a job' },
    ],
    [
      '429 was not processed, and carries the wait that the service asked for',
      answer(429, { error: 'slow down' }, { 'retry-after': '17' }),
      { verdict: 'not-sent', repeatable: true, answered: true, retryAfterMs: 17_000 },
    ],
    [
      '200 and a body that breaks off is unknown',
      cutOff(200, '{"id":"job-1","sta'),
      {
        verdict: 'unknown',
        label: expect.stringMatching(/^(UND_ERR_[A-Z_]+|invalid http)$/),
        httpStatus: 200,
      },
    ],
    [
      '400 and a body that breaks off is rejected: the status line is enough',
      cutOff(400, '{"error":"prom'),
      { verdict: 'rejected', httpStatus: 400, message: 'http 400: Bad Request' },
    ],
  ])('with %s', async (_what, onRequest, expected) => {
    expect(await sendTo(onRequest)).toMatchObject(expected);
  });

  // Proves A2.
  it.each([301, 307, 308])('with %i is unknown, and is not followed', async (status) => {
    const other = await wire.anotherServer();
    const location = `${other.url}/elsewhere`;
    expect(await sendTo(answer(status, '', { location }))).toEqual({
      verdict: 'unknown',
      label: `http ${status}`,
      message: `http ${status}: a redirect to ${location}, which is not followed; check AGENT_API_BASE_URL`,
      httpStatus: status,
    });
    expect(await wire.client().getJob(ADDRESS)).toMatchObject({ kind: 'trouble', label: `http ${status}` });
    expect(other.connections).toBe(0);
  });

  it.each([
    [200, JSON.stringify(JOB), { verdict: 'accepted', job: JOB }],
    [200, '', { verdict: 'unknown', label: 'timeout', httpStatus: 200 }],
    [404, '', { verdict: 'rejected', label: 'http 404' }],
    [429, '', { verdict: 'not-sent', answered: true, label: 'http 429' }],
  ])(
    'with %i, and a body %j that drips on for ever, ends by the time limit',
    async (status, body, expected) => {
      holdTimers();
      endInTheBody();
      const outcome = await sendTo((socket) => {
        socket.write(httpHead(status, { 'content-length': 1_000_000 }) + body);
        const dripping = setInterval(() => socket.write(' '), 20);
        socket.on('close', () => {
          clearInterval(dripping);
        });
      });
      expect(outcome).toMatchObject(expected);
      await wire.server.allClosed();
    },
  );

  it('with 200 and a huge body is unknown, and the rest is not read', async () => {
    const outcome = await sendTo((socket) => {
      socket.write(httpHead(200, { 'content-length': 1_000_000_000 }) + ' '.repeat(1_048_577));
    });
    const message = 'http 200 but the body is not whole (the body has more than 1 MiB)';
    expect(outcome).toEqual({ verdict: 'unknown', label: 'too large', message, httpStatus: 200 });
    await wire.server.allClosed();
  });

  // Proves K3.
  it.each<[string, OnRequest]>([
    ['words', answer(401, { error: `bad ${SPELLED}, ${encodeURIComponent(SPELLED)}\r\nX: "${SPELLED}"` })],
    ['words that break off within it', cutOff(401, `bad ${SPELLED.slice(0, 20)}`)],
    ['a redirect', answer(307, '', { location: `/next?key=${encodeURIComponent(SPELLED)}` })],
    ['the id of another job', answer(200, { id: SPELLED, status: 'x' })],
    ['a status', answer(200, '{"id":"job-1","status":"agnt_9f\\/8e\\u002B7d&6c=5b4a3928"}')],
    [
      'the fields of a job',
      answer(200, {
        ...JOB,
        prLink: `https://code.example/?key=${encodeURIComponent(SPELLED)}`,
        source: { repository: 'agnt_9f/8e+7d&amp;6c=5b4a3928', ref: '\\u0061gnt_9f/8e+7d&6c=5b4a3928' },
      }),
    ],
  ])('with the key in %s shows none of it', async (where, onRequest) => {
    wire.server.onRequest = onRequest;
    const client = wire.client({ apiKey: keyFromText(SPELLED) });
    const outcomes = [await client.sendMessage(MESSAGE), await client.getJob(ADDRESS)];
    expect(JSON.stringify(outcomes)).not.toMatch(/9f|8e|7d|6c|5b4a/i);
    expect(JSON.stringify(outcomes).includes('[key]')).toBe(!where.includes('break off'));
  });

  // Proves K3.
  it('with the job itself is accepted, though its id looks like a secret, and hides the key in its fields', async () => {
    const id = `job-${KEY.slice(5)}`;
    const job = { ...JOB, id, prLink: 'https://code.example/pr?key=[key]' };
    wire.server.onRequest = answer(200, { ...job, prLink: job.prLink.replace('[key]', KEY) });
    const client = wire.client();
    expect(await client.sendMessage({ ...MESSAGE, jobId: id })).toEqual({ verdict: 'accepted', job });
    expect(await client.getJob({ ...ADDRESS, jobId: id })).toEqual({ kind: 'job', job });
  });
});

it.each([
  ['103 Early Hints', { verdict: 'accepted', job: JOB }, { kind: 'job', job: JOB }],
  // The HTTP client reads no further, and says so.
  ['100 Continue', { verdict: 'unknown', ...UNASKED }, { kind: 'trouble', ...UNASKED }],
])('a POST whose answer comes after %s', async (early, outcome, read) => {
  wire.server.onRequest = (socket, request) => {
    socket.write(`HTTP/1.1 ${early}\r\n\r\n`);
    answer(200, JOB)(socket, request);
  };
  expect(await wire.client().sendMessage(MESSAGE)).toEqual(outcome);
  expect(await wire.client().getJob(ADDRESS)).toEqual(read);
  expect(wire.server.requests).toHaveLength(2);
});

describe('a POST without an answer', () => {
  it.each<[string, OnRequest, RegExp]>([
    ['reset', (socket) => socket.resetAndDestroy(), /^ECONNRESET$|^UND_ERR_SOCKET$/],
    ['answered with no HTTP at all', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'), /^invalid http$/],
    [
      'upgraded to another protocol',
      (socket) => socket.end('HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
      /^UND_ERR_SOCKET$/,
    ],
  ])('that was %s after it was read is unknown, and is not sent again', async (_what, onRequest, label) => {
    wire.server.onRequest = onRequest;
    const outcome = await wire.client().sendMessage(MESSAGE);
    expectNoKey(outcome);
    expect(outcome).toMatchObject({ verdict: 'unknown', label: expect.stringMatching(label) });
    expect(outcome).not.toHaveProperty('httpStatus');
    expect(wire.server.requests).toHaveLength(1);
    expect(wire.server.connections).toBe(1);
  });

  it('that was reset before it was read is unknown: it may lie in a buffer', async () => {
    // The first byte has come, the message was not looked at.
    wire.server.onConnection = (socket) => {
      socket.once('readable', () => socket.resetAndDestroy());
      return true;
    };
    const outcome = await wire.client().sendMessage({ ...MESSAGE, prompt: 'x'.repeat(200_000) });
    const label = expect.stringMatching(/^(UND_ERR_SOCKET|ECONNRESET|EPIPE)$/);
    expect(outcome).toMatchObject({ verdict: 'unknown', label });
    expect([wire.server.requests.length, wire.server.connections]).toEqual([0, 1]);
  });

  it.each([
    ['the time limit', LIMIT_MS, {}],
    ['the time limit of this very exchange', 2 * LIMIT_MS, { timeoutMs: LIMIT_MS }],
  ])('within %s is unknown, and so is a read', async (_whose, timeoutMs, limits) => {
    holdTimers();
    wire.server.onRequest = outOfTime;
    const client = wire.client({ timeoutMs });
    const message = `timeout: no answer from http://127.0.0.1:${wire.server.port} within 1m`;
    const why = { label: 'timeout', message };
    expect(await client.sendMessage(MESSAGE, limits)).toEqual({ verdict: 'unknown', ...why });
    expect(await client.getJob(ADDRESS, limits)).toEqual({ kind: 'trouble', ...why });
    expect(wire.server.requests).toHaveLength(2);
    await wire.server.allClosed();
  });

  it('is waited for when the client is closed', async () => {
    let closing: Promise<void> | undefined;
    const client = wire.client();
    wire.server.onRequest = (socket, request) => {
      closing = client.close();
      setImmediate(() => {
        answer(200, JOB)(socket, request);
      });
    };
    expect(await client.sendMessage(MESSAGE)).toEqual({ verdict: 'accepted', job: JOB });
    await closing;
    expect(await client.sendMessage(MESSAGE)).toMatchObject({ verdict: 'not-sent', label: 'closed' });
    expect(await client.getJob(ADDRESS)).toMatchObject({ kind: 'trouble', label: 'closed' });
    expect(wire.server.requests).toHaveLength(1);
  });
});
