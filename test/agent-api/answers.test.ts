import { describe, expect, it } from '@jest/globals';
import { type Answer, bodyOf } from '../../src/agent-api/exchange';
import { jobAnswer, parseRetryAfter, proofOfStatus, readJob, sendOutcome } from '../../src/agent-api/outcome';
import { Redactor } from '../../src/agent-api/redaction';
import { errorTrouble, serviceMessage } from '../../src/agent-api/trouble';
import { JOB } from '../harness/samples';
import { JOB as FULL_JOB } from './agent-api-under-test';

it('what a status proves about a POST is a rejection, that it was not processed, or nothing', () => {
  const rejected = [400, 401, 403, 404, 405, 409, 410, 413, 415, 422];
  for (let status = 200; status < 1_000; status += 1) {
    const certain = status === 429 ? 'not processed' : 'unknown';
    const proof = rejected.includes(status) ? 'rejected' : certain;
    expect([status, proofOfStatus(status)]).toEqual([status, proof]);
  }
});

it('after an address or a header that can’t be one nothing was sent, and no repetition heals it', () => {
  for (const code of ['UND_ERR_INVALID_ARG', 'ERR_INVALID_URL', 'ERR_INVALID_CHAR']) {
    const nothing = { kind: 'no answer', started: false, brokenBy: errorTrouble({ code }) } as const;
    expect(sendOutcome(nothing, 'job-1')).toMatchObject({ verdict: 'not-sent', repeatable: false });
  }
});

it.each<[string | undefined, number | undefined]>([
  ['120', 120_000],
  ['-1.5', 0],
  ['Sun, 01 Mar 2026 12:00:30 GMT', 30_000],
  ['2026-03-01T12:00:30Z', 30_000],
  ['Wed, 21 Oct 2015 07:28:00 GMT', 0],
  ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
  [undefined, undefined],
  ['1e3', undefined],
  ['Sun, 99 Foo 2026 12:00:30 GMT', undefined],
])('the Retry-After %j is %j ms, by the time of its answer', (header, expected) => {
  // By the worker's clock, which may be wrong by years, it would be another wait.
  expect(parseRetryAfter(header, 'Sun, 01 Mar 2026 12:00:00 GMT')).toBe(expected);
});

it('a date says nothing where the answer tells no time', () => {
  for (const answeredAt of [undefined, 'today'])
    expect(parseRetryAfter('Sun, 01 Mar 2026 12:00:30 GMT', answeredAt)).toBeUndefined();
});

const refused = (code: string, address: string) => ({ code, syscall: 'connect', address, port: 4010 });
const round = new Error('round and round');
round.cause = round;
it.each([
  ['causes that run in a circle', round, 'network error', 'round and round'],
  ['a code that could not be counted', { code: 'x y z' }, 'network error', 'network error'],
  [
    'every address of a host',
    { errors: [refused('ECONNREFUSED', '::1'), refused('ETIMEDOUT', '127.0.0.1')], code: 'ECONNREFUSED' },
    'ECONNREFUSED',
    'ECONNREFUSED [::1]:4010, ETIMEDOUT 127.0.0.1:4010',
  ],
])('an error has a label and a phrase by %s', (_what, error, label, message) => {
  expect(errorTrouble(error)).toEqual({ label, message });
});

const AS_IT_IS = { text: String, field: String };

/** What an answer to a read tells. */
function readAs(status: number, body: string, said: Partial<Answer['headers']> = {}) {
  const headers = { location: undefined, retryAfter: undefined, date: undefined, ...said };
  return jobAnswer({ kind: 'answer', status, headers, body: bodyOf(body, AS_IT_IS), brokenBy: null }, 'j');
}

// Proves A4.
it.each([
  [401, 'http 401: the key is expired or wrong; no'],
  [403, 'http 403: the key may not read this project, or this address is not allowed; no'],
  [404, 'http 404: no'],
  [503, 'http 503: no'],
])('a read that is answered with %i is a trouble, with the wait that is asked for', (status, message) => {
  const [date, retryAfter] = ['Mon, 06 Jan 2020 10:00:00 GMT', 'Mon, 06 Jan 2020 10:02:00 GMT'];
  const said = { label: `http ${status}`, message, httpStatus: status, serviceMessage: 'no' };
  const trouble = { kind: 'trouble', ...said, retryAfterMs: 120_000 };
  expect(readAs(status, '{"error":"no"}', { date, retryAfter })).toEqual(trouble);
});

// Proves A7.
it.each([
  ['<html><center><h1>Not Found</h1></center></html>', ''],
  ['default backend - 404', '; default backend - 404'],
  ['"no such route"', '; no such route'],
  ['{"error":"n', ''],
])('a read that is answered by a gateway, with %j, says nothing of job or key', (body, said) => {
  const why = 'but the body is no JSON object: a gateway, and not the service; check AGENT_API_BASE_URL';
  for (const status of [400, 401, 403, 404]) {
    // No httpStatus, by which the workflow would end.
    const trouble = { kind: 'trouble', label: 'not a job', message: `http ${status}, ${why}${said}` };
    expect(readAs(status, body)).toEqual(trouble);
  }
});

describe('readJob', () => {
  const read = (job: unknown) => readJob(bodyOf(JSON.stringify(job), AS_IT_IS));
  const ACTIVE = { id: 'j', status: 'active' };

  it('takes the contract’s fields and drops the others', () => {
    const job = { ...FULL_JOB, prLink: 'https://code.example/ä?b=c#d', archivedAt: '2026-01-02T00:00:00Z' };
    const source = { ...job.source, token: 'x' };
    expect(read({ ...job, prLink: ` ${job.prLink}\n`, source, turn: 3 })).toEqual(job);
  });

  it.each([
    {},
    { source: null, model: null, prLink: null, createdAt: null, archivedAt: null },
    { source: { repository: 5 }, model: 7, prLink: '', createdAt: 0, archivedAt: false },
    ...['javascript:alert(1)', '//code.example/x', 'https://code.example/a\nb'].map((prLink) => ({ prLink })),
    { source: 'acme', prLink: `https://code.example/${'x'.repeat(2_048)}` },
  ])('reads as null what is absent, or no text and no link: %j', (fields) => {
    expect(read({ ...ACTIVE, ...fields })).toEqual(JOB);
  });

  it('finds no job without id and status, or in half a text', () => {
    const noJobs = [{ status: 'active' }, { ...ACTIVE, id: 1 }, { id: 'j', status: null }, [ACTIVE]];
    const texts = ['', '<html>', '{"id":"j","status":"active"', '['.repeat(500_000)];
    for (const body of [...texts, ...noJobs.map((value) => JSON.stringify(value))])
      expect(readJob(bodyOf(body, AS_IT_IS))).toBeUndefined();
  });

  it('bounds a status to 64 characters, any other text to 1,024, and keeps the id, which is compared', () => {
    const long = 'x'.repeat(3_000);
    const job = read({ id: long, status: long, model: long, source: { ref: long }, createdAt: long });
    const texts = [job?.id, job?.status, job?.model, job?.source.ref, job?.createdAt];
    expect(texts.map((text) => text?.length)).toEqual([3_000, 64, 1_024, 1_024, 1_024]);
  });
});

describe('the service’s own words', () => {
  const wordsIn = (body: string, redact: (text: string) => string = String) =>
    serviceMessage(bodyOf(body, { text: redact, field: String }));

  it.each([
    ['{"error":{"message":"no such job","code":7}}', 'no such job'],
    ['{"detail":"no such job"}', 'no such job'],
    ['"quota used up"', 'quota used up'],
    ['upstream connect error', 'upstream connect error'],
    ['{"error":"one\\r\\ntwo\\u0000\\u001b[31m\\u2028three\\u202e \\ud800"}', 'one two [31m three \ufffd'],
    ...[' \n ', '{}', '{"error":7}', '{"error":"cut of', '<!DOCTYPE html><p>error', '\n<html>'].map(
      (body) => [body, undefined] as const,
    ),
  ] as const)('of %j are %j', (body, words) => {
    expect(wordsIn(body)).toBe(words);
  });

  // Proves K3.
  it('are bounded to 1 KiB, and hold no part of a key that a bound has cut', () => {
    const key = 'agnt_9f8e7d6c5b4a39281706f5e4d3c2b1a0';
    const { text } = new Redactor([key]);
    const spelled = key.replace(/./g, (c) => `%${c.charCodeAt(0).toString(16)}`);
    const error = `${spelled} `.repeat(2_000);
    expect(text(error.slice(0, 16_384))).toMatch(/^(\[key\] ){146}agnt_9f8e/);
    expect(wordsIn(JSON.stringify({ error }), text) ?? '').not.toMatch(/agnt|9f8e/);
    const late = JSON.stringify({ error: 'x'.repeat(1_000) + key + 'x'.repeat(200_000) });
    expect(wordsIn(late, text)).toMatch(/^x{1000}\[key\]x{18}…$/);
  });
});

it('a body is read, and so redacted, only in the fields of a job and of an error, and 16 KiB of it', () => {
  const asked: string[] = [];
  const redact = (text: string) => {
    asked.push(text);
    return text;
  };
  const hostile = '\\u0041%41&amp;'.repeat(2_000);
  const half = hostile.slice(0, 8_000);
  const error = { message: 'no', other: { error: hostile }, id: half, source: { ref: half } };
  const source = { repository: half, ref: half, error: half, source: { ref: half } };
  const body = { error, list: [hostile], x: hostile, detail: hostile, id: 'j', status: half, model: hostile };
  const read = { id: 'j', status: half, source: { repository: half, ref: '' }, model: '' };
  const rest = 16_384 - 1 - 8_000 - 8_000 - 2;
  const value = { ...read, error: { message: 'no' }, message: undefined, detail: '' };
  const texts = { text: redact, field: redact };
  expect(bodyOf(JSON.stringify({ ...body, source }), texts)).toEqual({ isHtml: false, value });
  expect(asked).toEqual(['j', half, half, 'no', hostile.slice(0, rest)]);
  expect(bodyOf(JSON.stringify({ detail: hostile }), texts).value).toEqual({
    detail: hostile.slice(0, 8_192),
  });
});
