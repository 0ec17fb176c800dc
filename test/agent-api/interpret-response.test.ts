import { expect, it } from '@jest/globals';
import { failureFromError } from '../../src/agent-api/failure-from-error';
import { parseBody } from '../../src/agent-api/http-request';
import {
  readJob,
  toPostOutcome,
  toJobResponse,
  verdictFromStatus,
} from '../../src/agent-api/interpret-response';
import { Redactor, WITHHELD } from '../../src/agent-api/redaction';
import { serviceMessage } from '../../src/agent-api/failure-from-response';
import { parseRetryAfter } from '../../src/agent-api/retry-after';
import type { PostOutcome } from '../../src/contract/send-result';
import { JOB } from '../harness/fixtures';
import { KEY, resultLabel } from './agent-api-under-test';

const NOON = 'Sun, 01 Mar 2026 12:00:00 GMT';

const STATUSES = [
  ['rejected', [400, 404, 405, 409, 410, 413, 415, 422]],
  ['not-sent', [401, 429]],
] as const;

// Proves A2.
it('the status alone decides the verdict of a POST, and every status that shows nothing leaves the delivery unknown', () => {
  for (let status = 200; status < 1_000; status += 1) {
    const [listed = 'unknown'] =
      STATUSES.find(([, statuses]) => statuses.some((each) => each === status)) ?? [];
    const [without, withRetryAfter] = status === 403 ? ['rejected', 'not-sent'] : [listed, listed];
    const verdicts = [undefined, '1'].map((retryAfter) =>
      verdictFromStatus({ status, headers: { location: undefined, retryAfter, date: undefined } }),
    );
    expect([status, ...verdicts]).toEqual([status, without, withRetryAfter]);
  }
});

const NOT_ALLOWED =
  "the key may read but not write, or the agent service does not allow the worker's IP address; no";

const WAIT = 'the agent service requested a wait with Retry-After; no';

// Proves A2, A3, A4.
it.each<[status: number, retryAfter: string | undefined, PostOutcome]>([
  [401, undefined, notProcessed(401, 'the key is expired or wrong; no')],
  [401, '60', { ...notProcessed(401, 'the key is expired or wrong; no'), retryAfterMs: 60_000 }],
  [403, '60', { ...notProcessed(403, WAIT), isRateLimit: true, retryAfterMs: 60_000 }],
  // The value can't be parsed, so the worker chooses the wait.
  [403, 'soon', { ...notProcessed(403, WAIT), isRateLimit: true }],
  [403, ' ', rejected(403, NOT_ALLOWED)],
  [403, undefined, rejected(403, NOT_ALLOWED)],
  [429, undefined, { ...notProcessed(429, 'no'), isRateLimit: true }],
  [429, '60', { ...notProcessed(429, 'no'), isRateLimit: true, retryAfterMs: 60_000 }],
  [503, '60', { ...failureOf(503, 'no'), verdict: 'unknown' }],
])(
  'a POST that receives %i with the Retry-After %j has the verdict and wait of the contract',
  (status, retryAfter, outcome) => {
    const headers = { location: undefined, retryAfter, date: NOON };
    const body = parseBody('{"error":"no"}', String);
    expect(toPostOutcome({ kind: 'response', status, headers, body, failure: null }, 'j')).toEqual(outcome);
  },
);

function failureOf(status: number, text: string) {
  return {
    label: `http_${status}`,
    message: `http ${status}: ${text}`,
    httpStatus: status,
    serviceMessage: 'no',
  };
}

function notProcessed(status: number, text: string) {
  return { ...failureOf(status, text), verdict: 'not-sent', reachedService: true } as const;
}

function rejected(status: number, text: string) {
  return { ...failureOf(status, text), verdict: 'rejected' } as const;
}

it('an invalid URL or header means not-sent, and the failure is permanent', () => {
  for (const code of ['UND_ERR_INVALID_ARG', 'ERR_INVALID_URL', 'ERR_INVALID_CHAR']) {
    const nothing = { kind: 'no response', started: false, failure: failureFromError({ code }) } as const;
    expect(toPostOutcome(nothing, 'job-1')).toMatchObject({ verdict: 'not-sent', isPermanent: true });
  }
});

// The wait must not depend on the worker's clock, which may be wrong by years.
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
])(
  'parses the Retry-After %j as a wait of %j ms, and counts a date from the Date header of the response',
  (header, expected, date = NOON) => {
    expect(parseRetryAfter(header, date)).toBe(expected);
  },
);

it('describes an error by its innermost cause or by the errors of all addresses of a host; a label is a valid code or a fixed text', () => {
  const round = new Error('round and round');
  round.cause = round;
  const refused = (code: string, address: string) => ({ code, address, port: 4010 });
  const each = [refused('ECONNREFUSED', '::1'), refused('ETIMEDOUT', '127.0.0.1')];
  expect(
    [round, { code: 'x y z' }, { errors: each, code: 'ECONNREFUSED' }].map((e) => failureFromError(e)),
  ).toEqual([
    { label: 'network_error', message: 'round and round' },
    { label: 'network_error', message: 'network_error' },
    { label: 'ECONNREFUSED', message: 'ECONNREFUSED [::1]:4010, ETIMEDOUT 127.0.0.1:4010' },
  ]);
});

it.each([
  ['UND_ERR_SOCKET', 'connection_closed'],
  ['EPIPE', 'connection_closed'],
  ['UND_ERR_CONNECT_TIMEOUT', 'connect_timeout'],
  ['HPE_INVALID_CONSTANT', 'invalid_http'],
  ['ECONNRESET', 'ECONNRESET'],
])('an error with the code %s has the label %s, and its message keeps the code', (code, label) => {
  const failure = { label, message: `${code}: other side closed` };
  expect(failureFromError({ code, message: 'other side closed' })).toEqual(failure);
  expect(resultLabel(label)).toBe(label);
});

/** Interprets a response to a read with this status and body. */
function readAs(status: number, body: string, retryAfter?: string) {
  const headers = { location: undefined, retryAfter, date: NOON };
  return toJobResponse(
    { kind: 'response', status, headers, body: parseBody(body, String), failure: null },
    'j',
  );
}

// Proves A4.
it.each([
  [401, 'the key is expired or wrong; no', {}],
  [403, WAIT, { isRateLimit: true }],
  [404, 'no', {}],
  [429, 'no', { isRateLimit: true }],
  [503, 'no', {}],
])(
  'a read that receives %i is a failed read, with the wait that Retry-After requests',
  (status, text, rateLimit) => {
    const failure = { kind: 'failure', ...failureOf(status, text), ...rateLimit, retryAfterMs: 120_000 };
    expect(readAs(status, '{"error":"no"}', '120')).toEqual(failure);
  },
);

it('a read that receives 403 without Retry-After is not a rate limit', () => {
  const text =
    "the key may not read this project, or the agent service does not allow the worker's IP address; no";
  expect(readAs(403, '{"error":"no"}')).toEqual({ kind: 'failure', ...failureOf(403, text) });
});

const UUID = '0f8fad5b-d9cb-469f-a165-70867728950e';

// Proves A13.
it.each([
  [UUID, UUID.toUpperCase(), true],
  [UUID.toUpperCase(), UUID, true],
  ['job-1', 'JOB-1', false],
  [UUID, UUID.replace('0', '1'), false],
  // An ID with other characters than a UUID is compared as it is.
  [`${UUID}x`, `${UUID}X`, false],
])('the job with the ID %j and the response with the ID %j are the same job: %j', (jobId, id, isSame) => {
  const headers = { location: undefined, retryAfter: undefined, date: NOON };
  const body = { isHtml: false, value: { id, status: 'active' } };
  const response = { kind: 'response', status: 200, headers, body, failure: null } as const;
  const message = `http 200 with the job ${JSON.stringify(id)} instead of the requested job ${JSON.stringify(jobId)}`;
  const failure = { label: 'another_job', message, httpStatus: 200 };
  const job = { ...JOB, id, status: 'active' };
  expect(toJobResponse(response, jobId)).toEqual(
    isSame ? { kind: 'job', job } : { kind: 'failure', ...failure },
  );
  expect(toPostOutcome(response, jobId)).toEqual(
    isSame ? { verdict: 'accepted', job } : { verdict: 'unknown', ...failure },
  );
});

const UNREADABLE = {
  label: 'bad_encoding',
  message: "the response has the encoding zstd, which the worker can't decode",
};

// Proves A12.
it.each([
  [200, 'http 200 with an unreadable body: ', { httpStatus: 200 }, 'unknown'],
  [403, 'http 403: ', { gatewayStatus: 403 }, 'rejected'],
  [404, 'http 404: ', { gatewayStatus: 404 }, 'rejected'],
  [503, 'http 503: ', { httpStatus: 503, label: 'http_503' }, 'unknown'],
])(
  'a response %i whose body cannot be decoded names the encoding, is a failed read, and decides a POST with its status alone',
  (status, start, fields, verdict) => {
    const headers = { location: undefined, retryAfter: undefined, date: NOON };
    const body = { isHtml: false };
    const response = { kind: 'response', status, headers, body, failure: UNREADABLE } as const;
    const read = toJobResponse(response, 'j');
    expect(read).toMatchObject({ kind: 'failure', label: 'bad_encoding', ...fields });
    expect(read).toMatchObject({ message: expect.stringMatching(`^${start}.*${UNREADABLE.message}$`) });
    expect(JSON.stringify(read)).not.toContain('AGENT_API_BASE_URL');
    expect(toPostOutcome(response, 'j')).toMatchObject({
      verdict,
      message: expect.stringContaining(UNREADABLE.message),
    });
  },
);

const GATEWAY = 'probably from a gateway: the body is not a JSON object; check AGENT_API_BASE_URL';

// Proves A7.
it.each([
  ['<html><center><h1>Not Found</h1></center></html>', ''],
  ['default backend - 404', '; default backend - 404'],
  ['', ''],
  ['null', ''],
  ['["no"]', ''],
  ['"no such route"', '; no such route'],
  ['{"error":"n', ''],
])(
  'a read with the body %j has a gatewayStatus and no httpStatus for 400, 401, 403 and 404',
  (body, quoted) => {
    for (const status of [400, 401, 403, 404]) {
      const message = `http ${status}, ${GATEWAY}${quoted}`;
      expect(readAs(status, body)).toEqual({
        kind: 'failure',
        label: 'not_a_job',
        message,
        gatewayStatus: status,
      });
    }
    for (const status of [409, 410, 429, 500, 503]) {
      expect(readAs(status, body)).toMatchObject({ label: `http_${status}`, httpStatus: status });
      expect(readAs(status, body)).not.toHaveProperty('gatewayStatus');
    }
  },
);

it('a read keeps the wait that a gateway requests with Retry-After', () => {
  expect(readAs(404, '', '120')).toMatchObject({ gatewayStatus: 404, retryAfterMs: 120_000 });
});

it('a POST with the body of a gateway keeps the httpStatus, because the status alone decides', () => {
  const headers = { location: undefined, retryAfter: undefined, date: NOON };
  const body = parseBody('<html>', String);
  const outcome = toPostOutcome({ kind: 'response', status: 404, headers, body, failure: null }, 'j');
  expect(outcome).toMatchObject({ verdict: 'rejected', label: 'http_404', httpStatus: 404 });
});

const read = (job: unknown) => readJob(parseBody(JSON.stringify(job), String));
const ACTIVE = { id: 'j', status: 'active' };

it('reads only the contract’s fields of a job, and limits the length of every text except the id, which is compared', () => {
  const source = { repository: 'acme/docs', ref: 'main' };
  const times = { createdAt: '2026-01-01T00:00:00Z', archivedAt: '2026-01-02T00:00:00Z' };
  const job = { ...ACTIVE, ...times, source, model: 'large', prLink: 'https://code.example/ä?b=c#d' };
  const received = { ...job, prLink: ` ${job.prLink}\n`, source: { ...source, token: 'x' }, turn: 3 };
  expect(read(received)).toEqual(job);
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
])('reads a field of a job as null if it is absent, is not a text, or is not a valid link: %j', (fields) => {
  expect(read({ ...ACTIVE, ...fields })).toEqual(JOB);
});

it('a body without an ID or a status, or an incomplete body, is not a job', () => {
  const noJobs = [
    ...[{ status: 'active' }, { ...ACTIVE, id: 1 }, { ...ACTIVE, id: '' }],
    ...[{ id: 'j', status: null }, { id: 'j', status: '' }, [ACTIVE]],
  ];
  const texts = ['', '<html>', '{"id":"j","status":"active"', '['.repeat(500_000)];
  for (const body of [...texts, ...noJobs.map((value) => JSON.stringify(value))])
    expect(readJob(parseBody(body, String))).toBeUndefined();
});

const readErrorText = (body: string, text: (text: string) => string = String) =>
  serviceMessage(parseBody(body, text));

it.each([
  ['{"error":{"message":"no such job","code":7}}', 'no such job'],
  ['{"detail":"no such job"}', 'no such job'],
  ['"quota used up"', 'quota used up'],
  ['upstream connect error', 'upstream connect error'],
  ['{"error":"one\\r\\ntwo\\u0000\\u001b[31m\\u2028three\\u202e \\ud800"}', 'one two [31m three \ufffd'],
  ...[' \n ', '{}', '{"error":7}', '{"error":"cut of', '<!DOCTYPE html><p>error', '\n<html>'].map((body) => [
    body,
  ]),
])('the error text of the body %j is %j', (body = '', expected) => {
  expect(readErrorText(body)).toBe(expected);
});

// Proves K3.
it('limits the error text to 1 KiB, and withholds an error text whose key begins before this limit', () => {
  const { redact } = new Redactor([KEY]);
  const withKeyAt = (position: number) =>
    readErrorText(
      JSON.stringify({ error: 'x'.repeat(position) + encodeURIComponent(KEY) + 'y'.repeat(200_000) }),
      redact,
    );
  expect(withKeyAt(1_020)).toBe(WITHHELD);
  expect(withKeyAt(100_000)).toMatch(/^x{1023}…$/);
});

it('reads and redacts only the fields of a job and of an error', () => {
  const redacted: string[] = [];
  const redact = (text: string) => {
    redacted.push(text);
    return text;
  };
  const unread = { list: ['no'], x: 'no', other: { error: 'no' } };
  const error = { ...unread, message: 'words', id: 'no', source: { ref: 'no' } };
  const source = { ...unread, repository: 'acme/docs', ref: 'main', error: 'no' };
  const body = { ...unread, id: 'j', status: 'active', source, error, detail: 'more' };
  const job = { id: 'j', status: 'active', source: { repository: 'acme/docs', ref: 'main' } };
  const value = { ...job, error: { message: 'words' }, detail: 'more' };
  expect(parseBody(JSON.stringify(body), redact)).toEqual({ isHtml: false, value });
  expect(redacted).toEqual(['j', 'active', 'acme/docs', 'main', 'words', 'more']);
});
