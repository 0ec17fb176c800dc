import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Body, bodyOf } from '../../src/agent-api/exchange';
import { parseRetryAfter, proofOfStatus, readJob, sendOutcome } from '../../src/agent-api/outcome';
import { Redactor } from '../../src/agent-api/redaction';
import { errorTrouble, serviceMessage } from '../../src/agent-api/trouble';
import { JOB } from '../harness/samples';

it('what a status proves about a POST is a rejection, that it was not processed, or nothing', () => {
  const rejected = [400, 401, 403, 404, 405, 409, 410, 413, 415, 422];
  for (let status = 200; status < 1_000; status += 1) {
    const certain = status === 429 ? 'not processed' : 'unknown';
    const proof = rejected.includes(status) ? 'rejected' : certain;
    expect([status, proofOfStatus(status)]).toEqual([status, proof]);
  }
});

it('no text of the service changes what its status proves about a POST', () => {
  const words = fc.string({ unit: 'grapheme', maxLength: 60 });
  const body = fc.oneof<fc.Arbitrary<Body>[]>(
    fc.record({ kind: fc.constant('text'), text: words }),
    fc.constant({ kind: 'html' }),
    fc.record({
      kind: fc.constant('json'),
      value: fc.oneof(
        words,
        fc.record({ error: words }),
        fc.record({ error: fc.record({ message: words }), detail: words }),
        fc.record({ id: fc.constant('another'), status: words }),
      ),
    }),
  );
  const answer = fc.record({ body, location: fc.option(words, { nil: undefined }) });
  fc.assert(
    fc.property(fc.integer({ min: 200, max: 999 }), answer, answer, (status, ...answers) => {
      const proofs = answers.map(({ body, location }) => {
        const headers = { location, retryAfter: undefined, date: undefined };
        const outcome = sendOutcome({ kind: 'answer', status, headers, body, brokenBy: null }, 'job-1');
        return [outcome.verdict, 'repeatable' in outcome && outcome.repeatable];
      });
      expect(proofs[0]).toEqual(proofs[1]);
    }),
  );
});

it.each(['UND_ERR_INVALID_ARG', 'ERR_INVALID_URL', 'ERR_INVALID_CHAR', 'PROXY_CREDENTIALS'])(
  'after %s nothing was sent, and no repetition heals it',
  (code) => {
    const outcome = sendOutcome(
      { kind: 'no answer', started: false, brokenBy: errorTrouble({ code }) },
      'job-1',
    );
    expect(outcome).toMatchObject({ verdict: 'not-sent', repeatable: false });
  },
);

describe('Retry-After', () => {
  // By the worker's clock, which may be wrong by years, it would be another wait.
  const NOW = 'Sun, 01 Mar 2026 12:00:00 GMT';

  it.each<[string | undefined, number | undefined]>([
    ['120', 120_000],
    ['1.5', 1_500],
    ['-5', 0],
    ['Sun, 01 Mar 2026 12:00:30 GMT', 30_000],
    ['Sun Mar  1 12:00:30 2026', 30_000],
    ['2026-03-01T12:00:30Z', 30_000],
    ['Wed, 21 Oct 2015 07:28:00 GMT', 0],
    [undefined, undefined],
    ['', undefined],
    ['1e3', undefined],
    ['Sun, 99 Foo 2026 12:00:30 GMT', undefined],
  ])('%j is %j ms, by the time of its answer', (header, expected) => {
    expect(parseRetryAfter(header, NOW)).toBe(expected);
  });

  it.each([undefined, '', 'today'])('as a date says nothing where the answer tells no time: %j', (date) => {
    expect(parseRetryAfter('Sun, 01 Mar 2026 12:00:30 GMT', date)).toBeUndefined();
    expect(parseRetryAfter('30', date)).toBe(30_000);
  });

  it.each(['9'.repeat(400), 'Fri, 31 Dec 9999 23:59:59 GMT'])(
    'an absurd one is a safe integer: %s',
    (header) => {
      const ms = parseRetryAfter(header, NOW);
      expect(Number.isSafeInteger(ms)).toBe(true);
      expect(ms).toBeGreaterThan(200_000_000_000_000);
    },
  );
});

describe('errorTrouble', () => {
  it('names every address of an AggregateError', () => {
    const refused = (code: string, address: string) =>
      Object.assign(new Error(code), { code, syscall: 'connect', address, port: 4010 });
    const error = new AggregateError([refused('ECONNREFUSED', '::1'), refused('ETIMEDOUT', '127.0.0.1')]);
    expect(errorTrouble(Object.assign(error, { code: 'ECONNREFUSED' }))).toEqual({
      label: 'ECONNREFUSED',
      message: 'ECONNREFUSED [::1]:4010, ETIMEDOUT 127.0.0.1:4010',
    });
  });

  const round = new Error('round and round');
  round.cause = round;
  it.each([
    ['causes that run in a circle', round, 'network error', 'round and round'],
    ['a text', 'boom', 'network error', 'network error'],
    ['a code that could not be counted', { code: 'x y z' }, 'network error', 'network error'],
    ['a parser’s error without a code', { name: 'HTTPParserError' }, 'invalid http', 'invalid http'],
    [
      'OpenSSL’s reason',
      { code: 'ERR_SSL_WRONG_VERSION_NUMBER', reason: 'wrong version number', message: '0:error:0A00010B' },
      'ERR_SSL_WRONG_VERSION_NUMBER',
      'ERR_SSL_WRONG_VERSION_NUMBER: wrong version number',
    ],
  ])('makes a label and a phrase of %s', (_what, error, label, message) => {
    expect(errorTrouble(error)).toEqual({ label, message });
  });
});

const AS_IT_IS = { text: String, field: String };

describe('readJob', () => {
  const read = (job: unknown) => readJob(bodyOf(JSON.stringify(job), AS_IT_IS));
  const ACTIVE = { id: 'j', status: 'active' };

  it('takes the contract’s fields and drops the others', () => {
    const job = {
      ...{ id: 'j', status: 'completed', model: 'large', prLink: 'https://code.example/acme/docs/pull/7' },
      ...{ createdAt: '2026-01-01T00:00:00Z', archivedAt: '2026-01-02T00:00:00Z' },
    };
    const source = { repository: 'acme/docs', ref: 'main' };
    expect(read({ ...job, source: { ...source, token: 'x' }, turn: 3 })).toEqual({ ...job, source });
  });

  it.each([
    {},
    { source: null, model: null, prLink: null, createdAt: null, archivedAt: null },
    { source: 'acme', model: 7, prLink: {}, createdAt: 0, archivedAt: false },
    { source: { repository: 5 }, prLink: '' },
    ...['javascript:alert(1)', '//code.example/x', 'https://code.example/a\nb'].map((prLink) => ({ prLink })),
    { prLink: `https://code.example/${'x'.repeat(2_048)}` },
  ])('reads as null what is absent, or no text and no link: %j', (fields) => {
    expect(read({ ...ACTIVE, ...fields })).toEqual(JOB);
  });

  it.each(['http://127.0.0.1:4010/pull/1', 'HTTPS://code.example/ä?b=c#d'])('keeps the link %j', (prLink) => {
    expect(read({ ...ACTIVE, prLink: ` ${prLink}\n` })?.prLink).toBe(prLink);
  });

  it.each([{ status: 'active' }, { ...ACTIVE, id: 1 }, { id: 'j' }, { id: 'j', status: null }, [ACTIVE]])(
    'finds no job in %j',
    (value) => {
      expect(read(value)).toBeUndefined();
    },
  );

  it.each(['', '<html>', '{"id":"j","status":"active"', '['.repeat(500_000)])(
    'finds none in text',
    (body) => {
      expect(readJob(bodyOf(body, AS_IT_IS))).toBeUndefined();
    },
  );

  it('bounds a status to 64 characters, any other text to 1,024, and keeps the id, which is compared', () => {
    const long = 'x'.repeat(5_000);
    const job = read({ id: long, status: long, model: long, source: { ref: long }, createdAt: long });
    const texts = [job?.id, job?.status, job?.model, job?.source.ref, job?.createdAt];
    expect(texts.map((text) => text?.length)).toEqual([5_000, 64, 1_024, 1_024, 1_024]);
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
    ['{"error":"one\\r\\ntwo\\u0000\\u001b[31m\\u2028three\\u202e"}', 'one two [31m three'],
    ['{"error":"lone \\ud800 half"}', 'lone \ufffd half'],
    ...['', ' \n ', '{}', '{"error":7}', '{"error":"cut of', '<!DOCTYPE html><p>error', '\n<html>'].map(
      (body) => [body, undefined] as const,
    ),
  ] as const)('of %j are %j', (body, words) => {
    expect(wordsIn(body)).toBe(words);
  });

  it('of an error of 200 KB are its beginning, of 1 KiB', () => {
    const words = wordsIn(JSON.stringify({ error: 'Too many links. '.repeat(13_000) }));
    expect(words).toHaveLength(1_024);
    expect(words).toMatch(/^(Too many links\. )+Too.*…$/);
  });

  // Proves K3.
  it('hold no part of a key that the bound before the redaction has cut, however short the rest becomes', () => {
    const key = 'agnt_9f8e7d6c5b4a39281706f5e4d3c2b1a0';
    const redactor = new Redactor([key]);
    const spelled = key.replace(/./g, (c) => `%${c.charCodeAt(0).toString(16)}`);
    const error = `${spelled} `.repeat(2_000);
    expect(redactor.text(error.slice(0, 16_384))).toMatch(/^(\[key\] ){146}agnt_9f8e/);
    expect(wordsIn(JSON.stringify({ error }), redactor.text) ?? '').not.toMatch(/agnt|9f8e/);
    const late = JSON.stringify({ error: 'x'.repeat(1_000) + key });
    expect(wordsIn(late, redactor.text)).toMatch(/^x{1000}\[key\]$/);
  });
});

it('a body is read, and so redacted, only in the fields of a job and of an error, and of 16 KiB of a text', () => {
  const asked: string[] = [];
  const redact = (text: string) => {
    asked.push(text);
    return text;
  };
  const hostile = '\\u0041%41&amp;'.repeat(2_000);
  const error = { message: 'no', other: { error: hostile } };
  const body = { error, list: [hostile], x: hostile, detail: hostile };
  const redactors = { text: redact, field: redact };
  const value = { error: { message: 'no' }, detail: hostile.slice(0, 8_192) };
  expect(bodyOf(JSON.stringify(body), redactors)).toEqual({ kind: 'json', value });
  const job = { kind: 'json', value: { id: 'j', model: '' } };
  expect(bodyOf(JSON.stringify({ id: 'j', model: hostile }), redactors)).toEqual(job);
  expect(asked).toEqual(['no', hostile.slice(0, 16_384), 'j']);
});
