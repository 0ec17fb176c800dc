import { expect, it } from '@jest/globals';
import { bodyOf } from '../../src/agent-api/exchange';
import { jobAnswer, parseRetryAfter, proofOfStatus, readJob, sendOutcome } from '../../src/agent-api/outcome';
import { Redactor } from '../../src/agent-api/redaction';
import { errorTrouble, serviceMessage } from '../../src/agent-api/trouble';
import { JOB } from '../harness/samples';
import { KEY } from './agent-api-under-test';

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

const NOON = 'Sun, 01 Mar 2026 12:00:00 GMT';
// By the worker's clock, which may be wrong by years, it would be another wait.
it.each<[string | undefined, number | undefined, string?]>([
  ['120', 120_000],
  ['-1.5', 0],
  ['Sun, 01 Mar 2026 12:00:30 GMT', 30_000],
  ['2026-03-01T12:00:30Z', 30_000],
  ['Wed, 21 Oct 2015 07:28:00 GMT', 0],
  ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
  [undefined, undefined],
  ['1e3', undefined],
  ['Sun, 99 Foo 2026 12:00:30 GMT', undefined],
  ['Sun, 01 Mar 2026 12:00:30 GMT', undefined, 'today'],
  ['Sun, 01 Mar 2026 12:00:30 GMT', undefined, ''],
])('the Retry-After %j is %j ms, by the time of its answer', (header, expected, answeredAt = NOON) => {
  expect(parseRetryAfter(header, answeredAt)).toBe(expected);
});

it('an error has a label that can be counted, and a phrase: of its last cause, or of every address of a host', () => {
  const round = new Error('round and round');
  round.cause = round;
  const refused = (code: string, address: string) => ({ code, address, port: 4010 });
  const each = [refused('ECONNREFUSED', '::1'), refused('ETIMEDOUT', '127.0.0.1')];
  expect(
    [round, { code: 'x y z' }, { errors: each, code: 'ECONNREFUSED' }].map((e) => errorTrouble(e)),
  ).toEqual([
    { label: 'network error', message: 'round and round' },
    { label: 'network error', message: 'network error' },
    { label: 'ECONNREFUSED', message: 'ECONNREFUSED [::1]:4010, ETIMEDOUT 127.0.0.1:4010' },
  ]);
});

const AS_IT_IS = { text: String, field: String };

/** What an answer to a read tells. */
function readAs(status: number, body: string, retryAfter?: string) {
  const headers = { location: undefined, retryAfter, date: NOON };
  return jobAnswer({ kind: 'answer', status, headers, body: bodyOf(body, AS_IT_IS), brokenBy: null }, 'j');
}

// Proves A4.
it.each([
  [401, 'the key is expired or wrong; no'],
  [403, 'the key may not read this project, or this address is not allowed; no'],
  [404, 'no'],
  [503, 'no'],
])('a read that is answered with %i is a trouble, with the wait that is asked for', (status, words) => {
  const [label, retryAfterMs] = [`http ${status}`, 120_000];
  const said = { label, message: `${label}: ${words}`, httpStatus: status, serviceMessage: 'no' };
  expect(readAs(status, '{"error":"no"}', '120')).toEqual({ kind: 'trouble', ...said, retryAfterMs });
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

const read = (job: unknown) => readJob(bodyOf(JSON.stringify(job), AS_IT_IS));
const ACTIVE = { id: 'j', status: 'active' };

it('a job is read in the contract’s fields, and in bounds; its id, which is compared, is kept whole', () => {
  const source = { repository: 'acme/docs', ref: 'main' };
  const times = { createdAt: '2026-01-01T00:00:00Z', archivedAt: '2026-01-02T00:00:00Z' };
  const job = { ...ACTIVE, ...times, source, model: 'large', prLink: 'https://code.example/ä?b=c#d' };
  const told = { ...job, prLink: ` ${job.prLink}\n`, source: { ...source, token: 'x' }, turn: 3 };
  expect(read(told)).toEqual(job);
  const long = 'x'.repeat(3_000);
  const cut = read({ id: long, status: long, model: long, source: { ref: long } }) ?? JOB;
  const texts = [cut.id, cut.status, cut.model, cut.source.ref];
  expect(texts.map((text) => text?.length)).toEqual([3_000, 64, 1_024, 1_024]);
});

it.each([
  {},
  { source: null, model: null, prLink: null, createdAt: null, archivedAt: null },
  { source: { repository: 5 }, model: 7, prLink: '', createdAt: 0, archivedAt: false },
  ...['javascript:alert(1)', '//code.example/x', 'https://code.example/a\nb'].map((prLink) => ({ prLink })),
  { source: 'acme', prLink: `https://code.example/${'x'.repeat(2_048)}` },
])('a field of a job that is absent, or no text and no link, is read as null: %j', (fields) => {
  expect(read({ ...ACTIVE, ...fields })).toEqual(JOB);
});

it('there is no job without id and status, or in half a text', () => {
  const noJobs = [{ status: 'active' }, { ...ACTIVE, id: 1 }, { id: 'j', status: null }, [ACTIVE]];
  const texts = ['', '<html>', '{"id":"j","status":"active"', '['.repeat(500_000)];
  for (const body of [...texts, ...noJobs.map((value) => JSON.stringify(value))])
    expect(readJob(bodyOf(body, AS_IT_IS))).toBeUndefined();
});

const wordsIn = (body: string, text: (text: string) => string = String) =>
  serviceMessage(bodyOf(body, { text, field: String }));

it.each([
  ['{"error":{"message":"no such job","code":7}}', 'no such job'],
  ['{"detail":"no such job"}', 'no such job'],
  ['"quota used up"', 'quota used up'],
  ['upstream connect error', 'upstream connect error'],
  ['{"error":"one\\r\\ntwo\\u0000\\u001b[31m\\u2028three\\u202e \\ud800"}', 'one two [31m three \ufffd'],
  ...[' \n ', '{}', '{"error":7}', '{"error":"cut of', '<!DOCTYPE html><p>error', '\n<html>'].map((body) => [
    body,
  ]),
])('the service’s own words in %j are %j', (body = '', words) => {
  expect(wordsIn(body)).toBe(words);
});

// Proves K3.
it('the service’s own words are bounded to 1 KiB, and hold no part of a key that a bound has cut', () => {
  const { text } = new Redactor([KEY]);
  const spelled = KEY.replace(/./g, (c) => `%${c.charCodeAt(0).toString(16)}`);
  const error = `${spelled} `.repeat(2_000);
  expect(text(error.slice(0, 16_384))).toMatch(/^(\[key\] )+agnt_9f/);
  expect(wordsIn(JSON.stringify({ error }), text) ?? '').not.toMatch(/agnt|9f/);
  const late = JSON.stringify({ error: 'x'.repeat(1_000) + KEY + 'x'.repeat(200_000) });
  expect(wordsIn(late, text)).toMatch(/^x{1000}\[key\]x{18}…$/);
});

it('a body is read, and so redacted, only in the fields of a job and of an error, and 16 KiB of it', () => {
  const asked: string[] = [];
  const redact = (text: string) => {
    asked.push(text);
    return text;
  };
  const half = 'x'.repeat(8_000);
  const unread = { list: [half], x: half, other: { error: half } };
  const error = { ...unread, message: 'no', id: half, source: { ref: half } };
  const source = { ...unread, repository: half, ref: half, error: half };
  const body = { ...unread, id: 'j', status: half, model: half, source, error, detail: half.repeat(2) };
  const job = { id: 'j', status: half, source: { repository: half, ref: '' }, model: '' };
  const value = { ...job, error: { message: 'no' }, detail: '' };
  expect(bodyOf(JSON.stringify(body), { text: redact, field: redact })).toEqual({ isHtml: false, value });
  expect(asked).toEqual(['j', half, half, 'no', half.slice(0, 16_384 - 16_003)]);
});
