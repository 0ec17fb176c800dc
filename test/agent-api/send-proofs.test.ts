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

/** An answer whose body breaks off. */
const cutOff =
  (status: number, body: string): OnRequest =>
  (socket) =>
    socket.end(httpHead(status, { 'content-length': 400 }) + body);

const raw =
  (text: string): OnRequest =>
  (socket) =>
    socket.end(text);

const after =
  (early: string): OnRequest =>
  (socket, request) => {
    socket.write(`HTTP/1.1 ${early}\r\n\r\n`);
    answer(200, JOB)(socket, request);
  };

const huge: OnRequest = (socket) =>
  socket.write(httpHead(200, { 'content-length': 1_000_000_000 }) + ' '.repeat(1_048_577));

/** What a POST proves once its connection was made (docs/guarantees.md). answers.test.ts has every status. */
describe('a POST that was read', () => {
  // Proves A2.
  it.each<[string, OnRequest, 'accepted' | 'rejected' | 'not-sent' | 'unknown', RegExp]>([
    ['the job itself', answer(202, JOB), 'accepted', /^$/],
    ['the job after 103 Early Hints', after('103 Early Hints'), 'accepted', /^$/],
    // The HTTP client reads no further.
    ['the job after 100 Continue', after('100 Continue'), 'unknown', /^UND_ERR_SOCKET: bad response/],
    ['a portal’s page', answer(200, '<!doctype html><h1>Log in'), 'unknown', /^http 200 with an HTML page/],
    ['429', answer(429, { error: 'slow down' }), 'not-sent', /^http 429: slow down$/],
    [
      '307',
      answer(307, '', { location: '/next' }),
      'unknown',
      /^http 307: a redirect to \/next, which is not/,
    ],
    ['200, and breaks off', cutOff(200, '{"id":"job-1"'), 'unknown', /^http 200 .* not whole/],
    ['400, and breaks off', cutOff(400, '{"error":"pro'), 'rejected', /^http 400: Bad Request$/],
    ['a huge body', huge, 'unknown', /^http 200 .* not whole \(the body has more than 1 MiB\)$/],
    ['a reset', (socket) => socket.resetAndDestroy(), 'unknown', /^(ECONNRESET|UND_ERR_SOCKET)/],
    ['no HTTP at all', raw('SSH-2.0-OpenSSH_9.6\r\n'), 'unknown', /./],
    [
      'another protocol',
      raw('HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
      'unknown',
      /^UND_ERR_SOCKET/,
    ],
  ])(
    'and answered with %s is known for what it proves, and is made once',
    async (_how, onRequest, verdict, message) => {
      wire.server.onRequest = onRequest;
      const client = wire.client();
      const outcome = await client.sendMessage(MESSAGE);
      expectNoKey(outcome);
      expect(outcome.verdict).toBe(verdict);
      expect('message' in outcome ? outcome.message : '').toMatch(message);
      expect([wire.server.requests.length, wire.server.connections]).toEqual([1, 1]);
      expect((await client.getJob(ADDRESS)).kind).toBe(verdict === 'accepted' ? 'job' : 'trouble');
    },
  );

  it.each([
    [200, JSON.stringify(JOB), { verdict: 'accepted', job: JOB }],
    [200, '', { verdict: 'unknown', label: 'timeout', httpStatus: 200 }],
    [404, '', { verdict: 'rejected', label: 'http 404' }],
  ])('and answered with %i and %j, and no end, ends by the time limit', async (status, body, expected) => {
    holdTimers();
    endInTheBody();
    wire.server.onRequest = (socket) => {
      socket.write(httpHead(status, { 'content-length': 1_000_000 }) + body);
      const dripping = setInterval(() => socket.write(' '), 20);
      socket.on('close', () => {
        clearInterval(dripping);
      });
    };
    expect(await wire.client().sendMessage(MESSAGE)).toMatchObject(expected);
    await wire.server.allClosed();
  });

  // Proves K3.
  it.each<[string, OnRequest]>([
    ['words', answer(401, { error: `bad ${SPELLED}, ${encodeURIComponent(SPELLED)}\r\nX: "${SPELLED}"` })],
    ['words that break off within it', cutOff(401, `bad ${SPELLED.slice(0, 20)}`)],
    ['a redirect', answer(307, '', { location: `/next?key=${encodeURIComponent(SPELLED)}` })],
    ['the id of another job', answer(200, { id: SPELLED, status: 'x' })],
    [
      'the fields of a job',
      answer(200, {
        ...JOB,
        status: SPELLED,
        prLink: `https://code.example/?key=${encodeURIComponent(SPELLED)}`,
        source: { repository: 'agnt_9f/8e+7d&amp;6c=5b4a3928', ref: '\\u0061gnt_9f/8e+7d&6c=5b4a3928' },
      }),
    ],
  ])('and answered with the key in %s shows none of it', async (where, onRequest) => {
    wire.server.onRequest = onRequest;
    const client = wire.client({ apiKey: keyFromText(SPELLED) });
    const outcomes = [await client.sendMessage(MESSAGE), await client.getJob(ADDRESS)];
    expect(JSON.stringify(outcomes)).not.toMatch(/9f|8e|7d|6c|5b4a/i);
    expect(JSON.stringify(outcomes).includes('[key]')).toBe(!where.includes('break off'));
  });

  it('is accepted by the id that was sent to, though that looks like a secret', async () => {
    const id = `job-${KEY.slice(5)}`;
    wire.server.onRequest = answer(200, { ...JOB, id });
    const job = { ...JOB, id };
    expect(await wire.client().sendMessage({ ...MESSAGE, jobId: id })).toEqual({ verdict: 'accepted', job });
  });
});

describe('a POST without an answer', () => {
  it('that was reset before it was read is unknown: it may lie in a buffer', async () => {
    wire.server.onHead = (socket) => {
      socket.resetAndDestroy();
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
    const why = { label: 'timeout', message: `timeout: no answer from ${wire.server.url} within 1m` };
    expect(await client.sendMessage(MESSAGE, limits)).toEqual({ verdict: 'unknown', ...why });
    expect(await client.getJob(ADDRESS, limits)).toEqual({ kind: 'trouble', ...why });
    expect(wire.server.requests).toHaveLength(2);
    await wire.server.allClosed();
  });
});
