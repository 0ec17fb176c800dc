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
import { answer, dripForever, httpHead, type OnRequest } from './misbehaving-server';

const wire = new WireTest();
/** A key with characters that are spelled in many ways. */
const SPELLED = 'agnt_9f/8e+7d&6c=5b4a3928';

const UNKNOWN = { verdict: 'unknown' };
const NO_JOB = { ...UNKNOWN, label: 'not a job' };
const SLOW = {
  label: 'http 429',
  message: 'http 429: slow down',
  httpStatus: 429,
  serviceMessage: 'slow down',
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

  // answers.test.ts has every status.
  it.each<[string, OnRequest, object]>([
    ['202 and the job itself is accepted', answer(202, JOB), { verdict: 'accepted', job: JOB }],
    [
      '200 and the job of another id is unknown',
      answer(200, { ...JOB, id: 'job-2' }),
      { ...UNKNOWN, label: 'another job', message: 'http 200 with the job "job-2", which was not asked for' },
    ],
    ['no content is unknown', answer(204, ''), { ...NO_JOB, httpStatus: 204 }],
    ['JSON that is no job is unknown', answer(200, '{"ok":true}'), { ...NO_JOB, httpStatus: 200 }],
    ['a portal’s HTML page is unknown', answer(200, '<!doctype html><h1>Log in</h1>'), NO_JOB],
    [
      '403 is rejected, in the words of the service',
      answer(403, { error: 'not you' }),
      { verdict: 'rejected', label: 'http 403', httpStatus: 403, serviceMessage: 'not you' },
    ],
    [
      '429 was not processed, and carries the wait that the service asked for',
      answer(429, { error: 'slow down' }, { 'retry-after': '17' }),
      { verdict: 'not-sent', repeatable: true, answered: true, ...SLOW, retryAfterMs: 17_000 },
    ],
    [
      '503 is unknown, also with Retry-After',
      answer(503, { error: 'not now' }, { 'retry-after': '0' }),
      { ...UNKNOWN, label: 'http 503', message: 'http 503: not now', httpStatus: 503 },
    ],
    [
      '200 and a body that breaks off is unknown',
      cutOff(200, '{"id":"job-1","sta'),
      { ...UNKNOWN, label: expect.stringMatching(/^(UND_ERR_[A-Z_]+|invalid http)$/), httpStatus: 200 },
    ],
    [
      '400 and a body that breaks off is rejected: the status line is enough',
      cutOff(400, '{"error":"prom'),
      { verdict: 'rejected', label: 'http 400', httpStatus: 400, message: 'http 400: Bad Request' },
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
    expect(other.connections).toBe(0);
  });

  it('with the whole job and then no end of the body is accepted', async () => {
    holdTimers();
    endInTheBody();
    const outcome = await sendTo((socket) => {
      socket.write(httpHead(200, { 'content-length': 10_000 }) + JSON.stringify(JOB));
    });
    expect(outcome).toEqual({ verdict: 'accepted', job: JOB });
  });

  it.each([
    [200, { verdict: 'unknown', label: 'timeout' }],
    [404, { verdict: 'rejected', label: 'http 404' }],
    [429, { verdict: 'not-sent', answered: true, label: 'http 429' }],
  ])('with %i and a body that drips for ever ends by the time limit', async (status, expected) => {
    holdTimers();
    endInTheBody();
    const outcome = await sendTo((socket) => {
      socket.write(httpHead(status, { 'content-length': 1_000_000 }));
      dripForever(socket, ' ', 20);
    });
    expect(outcome).toMatchObject({ ...expected, httpStatus: status });
    await wire.server.allClosed();
  });

  it('with 200 and a huge body is unknown, and the rest is not read', async () => {
    let written = 0;
    const outcome = await sendTo((socket) => {
      socket.write(httpHead(200, { 'transfer-encoding': 'chunked' }));
      const piece = Buffer.alloc(65_536, ' ');
      const pour = () => {
        while (!socket.destroyed) {
          written += piece.length;
          if (!socket.write(Buffer.concat([Buffer.from('10000\r\n'), piece, Buffer.from('\r\n')]))) {
            socket.once('drain', pour);
            return;
          }
        }
      };
      pour();
    });
    expect(outcome).toEqual({
      verdict: 'unknown',
      label: 'too large',
      message: 'http 200 but the body is not whole (the body has more than 1 MiB)',
      httpStatus: 200,
    });
    await wire.server.allClosed();
    // What is beyond the mebibyte lies in socket buffers on both sides.
    expect(written).toBeLessThan(32 * 1_048_576);
  });

  // Proves K3.
  it.each<[string, OnRequest]>([
    ['words', answer(401, { error: `bad ${SPELLED}, ${encodeURIComponent(SPELLED)}\r\nX: "${SPELLED}"` })],
    ['words that break off within it', cutOff(401, `bad ${SPELLED.slice(0, 20)}`)],
    ['a redirect', answer(307, '', { location: '/next?key=agnt_9f%2f8e%2b7d%266c%3d5b4a3928' })],
    ['the id of another job', answer(200, '{"id":"agnt_9f\\/8e\\u002B7d&6c=5b4a3928","status":"x"}')],
    ['a status', answer(200, '{"id":"job-1","status":"agnt_9f\\/8e\\u002B7d&6c=5b4a3928"}')],
    [
      'the fields of a job',
      answer(200, {
        ...JOB,
        prLink: 'https://code.example/?key=agnt_9f%2f8e%2b7d%266c%3d5b4a3928',
        source: { repository: 'agnt_9f/8e+7d&amp;6c=5b4a3928', ref: '\\u0061gnt_9f/8e+7d&6c=5b4a3928' },
        createdAt: 'agnt_9f/8e 7d&6c=5b4a3928',
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
  it.each(['a bearer token-job', 'job-9f8e7d6c5b4a39281706f5e4d3c2b1a0'])(
    'with the job itself is accepted, though its id looks like a secret, and hides the key in its fields: %s',
    async (id) => {
      const job = { ...JOB, id, prLink: 'https://code.example/pr?key=[key]' };
      wire.server.onRequest = answer(200, { ...job, prLink: job.prLink.replace('[key]', KEY) });
      const client = wire.client();
      expect(await client.sendMessage({ ...MESSAGE, jobId: id })).toEqual({ verdict: 'accepted', job });
      expect(await client.getJob({ ...ADDRESS, jobId: id })).toEqual({ kind: 'job', job });
    },
  );
});

describe('a POST whose answer comes after another one', () => {
  it.each(['102 Processing', '103 Early Hints'])('%s is accepted', async (early) => {
    wire.server.onRequest = (socket, request) => {
      socket.write(`HTTP/1.1 ${early}\r\nlink: </x>; rel=preload\r\n\r\n`);
      answer(200, JOB)(socket, request);
    };
    expect(await wire.client().sendMessage(MESSAGE)).toEqual({ verdict: 'accepted', job: JOB });
    expect(await wire.client().getJob(ADDRESS)).toEqual({ kind: 'job', job: JOB });
  });

  it('100 Continue is unknown, because the HTTP client reads no further, and says so', async () => {
    wire.server.onRequest = (socket, request) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      answer(200, JOB)(socket, request);
    };
    const message = expect.stringMatching(
      /^UND_ERR_SOCKET: the service, .* answered 100 Continue without being asked/,
    );
    const why = { label: 'UND_ERR_SOCKET', message };
    expect(await wire.client().sendMessage(MESSAGE)).toEqual({ verdict: 'unknown', ...why });
    expect(await wire.client().getJob(ADDRESS)).toEqual({ kind: 'trouble', ...why });
    expect(wire.server.requests).toHaveLength(2);
  });
});

describe('a POST without an answer', () => {
  it.each<[string, OnRequest, RegExp]>([
    ['reset', (socket) => socket.resetAndDestroy(), /^ECONNRESET$|^UND_ERR_SOCKET$/],
    ['answered with no HTTP at all', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'), /^invalid http$/],
    [
      'answered with endless headers',
      (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}`),
      /^UND_ERR_HEADERS_OVERFLOW$/,
    ],
    [
      'answered with 100 to 199 only',
      (socket) => socket.end('HTTP/1.1 103 Early Hints\r\n\r\n'),
      /^UND_ERR_SOCKET$/,
    ],
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
    ['the time limit of this very send', 2 * LIMIT_MS, { timeoutMs: LIMIT_MS }],
  ])('within %s is unknown', async (_whose, timeoutMs, limits) => {
    holdTimers();
    wire.server.onRequest = outOfTime;
    const outcome = await wire.client({ timeoutMs }).sendMessage(MESSAGE, limits);
    expectNoKey(outcome);
    expect(outcome).toEqual({
      verdict: 'unknown',
      label: 'timeout',
      message: `timeout: no answer from http://127.0.0.1:${wire.server.port} within 1m`,
    });
    expect(wire.server.requests).toHaveLength(1);
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
    expect(wire.server.requests).toHaveLength(1);
  });
});
