import type { Socket } from 'node:net';
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

/** What a POST proves once its connection was made: one test for each row of docs/guarantees.md. */
describe('a POST that was answered', () => {
  async function sendTo(onRequest: OnRequest) {
    wire.server.onRequest = onRequest;
    const outcome = await wire.client().sendMessage(MESSAGE);
    expectNoKey(outcome);
    expect(wire.server.requests).toHaveLength(1);
    return outcome;
  }

  it.each([200, 201, 202])('with %i and the job itself is accepted', async (status) => {
    expect(await sendTo(answer(status, JOB))).toEqual({ verdict: 'accepted', job: JOB });
  });

  it('with 200 and the job of another id is unknown', async () => {
    expect(await sendTo(answer(200, { ...JOB, id: 'job-2' }))).toEqual({
      verdict: 'unknown',
      label: 'another job',
      message: 'http 200 with the job "job-2", which was not asked for',
      httpStatus: 200,
    });
  });

  it.each([
    ['no content', 204, ''],
    ['JSON that is no job', 200, '{"ok":true}'],
    ['a portal’s HTML page', 200, '<!doctype html><h1>Log in</h1>'],
  ])('with success and %s is unknown', async (_what, status, body) => {
    expect(await sendTo(answer(status, body))).toMatchObject({
      verdict: 'unknown',
      label: 'not a job',
      httpStatus: status,
    });
  });

  // outcome.test.ts has every status.
  it.each([400, 401, 403, 404])('with %i is rejected, in the words of the service', async (status) => {
    expect(await sendTo(answer(status, { error: 'this will not do' }))).toMatchObject({
      verdict: 'rejected',
      label: `http ${status}`,
      message: expect.stringContaining('this will not do'),
      httpStatus: status,
      serviceMessage: 'this will not do',
    });
  });

  it('with 429 was not processed, and carries the wait that the service asked for', async () => {
    expect(await sendTo(answer(429, { error: 'slow down' }, { 'retry-after': '17' }))).toEqual({
      verdict: 'not-sent',
      repeatable: true,
      answered: true,
      label: 'http 429',
      message: 'http 429: slow down',
      httpStatus: 429,
      serviceMessage: 'slow down',
      retryAfterMs: 17_000,
    });
  });

  it.each([408, 425, 500, 503])('with %i is unknown, also with Retry-After', async (status) => {
    expect(await sendTo(answer(status, { error: 'not now' }, { 'retry-after': '0' }))).toMatchObject({
      verdict: 'unknown',
      label: `http ${status}`,
      message: `http ${status}: not now`,
      httpStatus: status,
    });
  });

  // Proves A2.
  it.each([301, 308])('with %i to the same server is unknown, and is not followed', async (status) => {
    expect(await sendTo(answer(status, '', { location: '/elsewhere' }))).toEqual({
      verdict: 'unknown',
      label: `http ${status}`,
      message: `http ${status}: a redirect to /elsewhere, which is not followed; check AGENT_API_BASE_URL`,
      httpStatus: status,
    });
  });

  // Proves A2.
  it.each([307, 308])('with %i to another server is unknown, and that never hears of it', async (status) => {
    const other = await wire.anotherServer();
    const location = `${other.url}/elsewhere`;
    const expected = { verdict: 'unknown', httpStatus: status };
    expect(await sendTo(answer(status, '', { location }))).toMatchObject(expected);
    expect(other.connections).toBe(0);
  });

  it('with 200 and a body that breaks off is unknown', async () => {
    const outcome = await sendTo((socket) => {
      socket.end(httpHead(200, { 'content-length': 400 }) + '{"id":"job-1","sta');
    });
    expect(outcome).toMatchObject({
      verdict: 'unknown',
      label: expect.stringMatching(/^(UND_ERR_[A-Z_]+|invalid http)$/),
      httpStatus: 200,
    });
  });

  it('with 400 and a body that breaks off is rejected: the status line is enough', async () => {
    const outcome = await sendTo((socket) => {
      socket.end(httpHead(400, { 'content-length': 400 }) + '{"error":"prom');
    });
    const rejected = { verdict: 'rejected', label: 'http 400', httpStatus: 400 };
    expect(outcome).toEqual({ ...rejected, message: 'http 400: Bad Request' });
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
  it('in words that repeat the key shows them without it', async () => {
    const outcome = await sendTo(
      answer(401, { error: `bad key ${KEY}, ${encodeURIComponent(KEY)}\r\nX: "${KEY}"` }),
    );
    expect(outcome).toMatchObject({ serviceMessage: 'bad key [key], [key] X: "[key]"' });
  });

  // Proves K3.
  it.each([
    ['a redirect', answer(307, '', { location: '/next?key=agnt_9f%2f8e%2b7d%266c%3d5b4a3928' })],
    ['the id of another job', answer(200, '{"id":"agnt_9f\\/8e\\u002B7d&6c=5b4a3928","status":"x"}')],
    [
      'a status that nobody knows',
      answer(200, '{"id":"job-1","status":"agnt_9f\\/8e\\u002B7d&6c=5b4a3928"}'),
    ],
    [
      'the fields of a job',
      answer(200, {
        ...JOB,
        prLink: 'https://code.example/?key=agnt_9f%2f8e%2b7d%266c%3d5b4a3928',
        source: { repository: 'agnt_9f/8e+7d&amp;6c=5b4a3928', ref: '\\u0061gnt_9f/8e+7d&6c=5b4a3928' },
        createdAt: 'agnt_9f/8e 7d&6c=5b4a3928',
      }),
    ],
  ])('with the key in %s shows none of it', async (_where, onRequest) => {
    wire.server.onRequest = onRequest;
    const apiKey = keyFromText('agnt_9f/8e+7d&6c=5b4a3928');
    const outcomes = [
      await wire.client({ apiKey }).sendMessage(MESSAGE),
      await wire.client({ apiKey }).getJob(ADDRESS),
    ];
    for (const outcome of outcomes) expect(JSON.stringify(outcome)).toContain('[key]');
    expect(JSON.stringify(outcomes)).not.toMatch(/9f|8e|7d|6c|5b4a/i);
  });

  it('in words that break off within the key shows none of it', async () => {
    const outcome = await sendTo((socket) => {
      socket.end(httpHead(401, { 'content-length': 100 }) + `bad key ${KEY.slice(0, 20)}`);
    });
    expect(JSON.stringify(outcome)).not.toContain(KEY.slice(0, 8));
  });

  // Proves K3.
  it.each(['a bearer token-job', 'job-9f8e7d6c5b4a39281706f5e4d3c2b1a0'])(
    'with the job itself is accepted, though its id looks like a secret: %s',
    async (id) => {
      const job = { ...JOB, id, model: 'bearer large' };
      wire.server.onRequest = answer(200, job);
      const client = wire.client();
      expect(await client.sendMessage({ ...MESSAGE, jobId: id })).toEqual({ verdict: 'accepted', job });
      expect(await client.getJob({ ...ADDRESS, jobId: id })).toEqual({ kind: 'job', job });
    },
  );

  it('in words that repeat the key without its prefix shows none of it', async () => {
    const outcome = await sendTo(answer(403, { error: `the key ${KEY.slice(5)} may not write` }));
    expect(outcome).toMatchObject({ serviceMessage: 'the key [key] may not write' });
  });

  // Proves K3.
  it('with a job that repeats the key is accepted without it', async () => {
    const job = { ...JOB, model: `key ${KEY}`, prLink: `https://code.example/pr?key=${KEY}` };
    expect(await sendTo(answer(200, job))).toEqual({
      verdict: 'accepted',
      job: { ...JOB, model: 'key [key]', prLink: 'https://code.example/pr?key=[key]' },
    });
  });
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

  it.each<[string, (socket: Socket) => void]>([
    ['closed', (socket) => socket.end()],
    ['reset', (socket) => socket.resetAndDestroy()],
  ])('that was %s before it was read is unknown: it may lie in a buffer', async (_what, breakUp) => {
    // The first byte has come, the message was not looked at.
    wire.server.onConnection = (socket) => {
      socket.once('readable', () => {
        breakUp(socket);
      });
      return true;
    };
    const outcome = await wire.client().sendMessage({ ...MESSAGE, prompt: 'x'.repeat(200_000) });
    expectNoKey(outcome);
    expect(outcome).toMatchObject({
      verdict: 'unknown',
      label: expect.stringMatching(/^(UND_ERR_SOCKET|ECONNRESET|EPIPE)$/),
    });
    expect(wire.server.requests).toHaveLength(0);
    expect(wire.server.connections).toBe(1);
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
    expect(await client.sendMessage(MESSAGE)).toMatchObject({ verdict: 'not-sent', label: 'closed' });
    expect(await client.getJob(ADDRESS)).toMatchObject({ kind: 'trouble', label: 'closed' });
    expect(wire.server.requests).toHaveLength(1);
  });
});
