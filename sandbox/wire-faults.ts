import {
  choice,
  duration,
  header,
  integer,
  type Parameter,
  type ParameterTable,
  type ParameterValues,
} from './fault-parameters';
import { type FaultContext, type FaultRow, type Instead, OPERATIONS } from './fault-row';
import { errorAnswer, htmlAnswer, type Reaction } from './reaction';
import { RETRY_AFTER_WORDS, retryAfterHeader } from './retry-after';

type React = (values: ParameterValues, context: FaultContext) => Reaction;

const BOTH = { operations: OPERATIONS, parameters: {} };
const MESSAGE_ONLY = { operations: ['message'], parameters: {} } as const;

function instead(processed: Instead['processed'], react: React): { effect: Instead } {
  return { effect: { kind: 'instead', processed, react } };
}

/** An answer that may come before or after the message was processed. */
function eitherWay(processed: 'yes' | 'no', parameters: ParameterTable, react: React) {
  const when = choice('whether a message is processed before the answer', ['yes', 'no'], processed);
  return {
    operations: OPERATIONS,
    parameters: { ...parameters, processed: when },
    ...instead('parameter', react),
  };
}

function retryAfter(fallback: string): { readonly retryAfter: Parameter } {
  return {
    retryAfter: header(
      `the Retry-After header: ${RETRY_AFTER_WORDS.join(', ')}, or the very text to send`,
      fallback,
    ),
  };
}

function status(code: number, words: string, wait = 'none') {
  return eitherWay('no', retryAfter(wait), (values, { now }) =>
    errorAnswer(code, words, retryAfterHeader(values.text('retryAfter'), now)),
  );
}

const PORTAL = '<!doctype html><title>Sign in</title><h1>Sign in to the guest network</h1>\n';
const BROKEN = 'something went wrong on our side';
const BUSY = 'the service is temporarily unavailable';

/** The faults of gateways, networks and keys: how a request is answered, or isn't. */
export const WIRE_FAULTS = {
  'http-500': { meaning: 'answers 500', ...status(500, BROKEN) },
  'http-503': { meaning: 'answers 503, as a gateway does', ...status(503, BUSY) },
  'http-429': { meaning: 'answers 429: too many requests', ...status(429, 'too many requests', '1') },
  status: {
    meaning: 'answers with a status code of your choice and an error body',
    ...eitherWay(
      'no',
      { code: integer('the status code', 200, 599, '418'), ...retryAfter('none') },
      (values, { now }) =>
        errorAnswer(
          values.number('code'),
          `answered with ${values.number('code')} on demand`,
          retryAfterHeader(values.text('retryAfter'), now),
        ),
    ),
  },
  html: {
    meaning: 'answers 200 with the HTML page of a sign-in portal',
    ...eitherWay('no', {}, () => htmlAnswer(200, PORTAL)),
  },
  redirect: {
    meaning: 'redirects to the same request at this or another origin; a request that follows is let through',
    ...eitherWay(
      'no',
      {
        code: choice('the status code', ['301', '302', '303', '307', '308'], '307'),
        to: choice('the origin', ['same', 'other'], 'same'),
      },
      (values, { addresses }) =>
        errorAnswer(Number(values.text('code')), 'moved', {
          location: values.text('to') === 'same' ? addresses.same : addresses.other,
        }),
    ),
  },
  unauthorized: {
    meaning: 'answers 401, as if the key had expired',
    ...BOTH,
    ...instead('no', () => errorAnswer(401, 'the API key has expired', { 'www-authenticate': 'Bearer' })),
  },
  'expire-key': {
    meaning: "the caller's key expires: 401 for every job from now on; POST /sandbox/keys makes a new key",
    ...BOTH,
    effect: { kind: 'key' },
  },
  'read-only': {
    meaning: 'answers 403 to a message: the key may read and not write',
    ...MESSAGE_ONLY,
    ...instead('no', () => errorAnswer(403, 'this API key may only read')),
  },
  'not-found': {
    meaning: 'answers 404, as if the job did not exist',
    ...BOTH,
    ...instead('no', () => errorAnswer(404, 'job not found')),
  },
  'close-before-read': {
    meaning: 'closes the connection before the body is read; nothing is processed',
    ...BOTH,
    ...instead('unread', () => ({ kind: 'close' })),
  },
  'close-after-read': {
    meaning: 'reads the request, processes nothing and closes the connection without an answer',
    ...BOTH,
    ...instead('no', () => ({ kind: 'close' })),
  },
  reset: {
    meaning: 'reads the request, processes nothing and resets the connection',
    ...BOTH,
    ...instead('no', () => ({ kind: 'reset' })),
  },
  hang: {
    meaning: 'reads the request, processes nothing and never answers',
    ...BOTH,
    ...instead('no', () => ({ kind: 'silence' })),
  },
  'processed-then-close': {
    meaning: 'processes the message and closes the connection without an answer',
    ...MESSAGE_ONLY,
    ...instead('yes', () => ({ kind: 'close' })),
  },
  'processed-then-reset': {
    meaning: 'processes the message and resets the connection',
    ...MESSAGE_ONLY,
    ...instead('yes', () => ({ kind: 'reset' })),
  },
  'processed-then-500': {
    meaning: 'processes the message and answers 500',
    ...MESSAGE_ONLY,
    ...instead('yes', () => errorAnswer(500, BROKEN)),
  },
  'processed-then-503': {
    meaning: 'processes the message and answers 503',
    operations: MESSAGE_ONLY.operations,
    parameters: retryAfter('none'),
    ...instead('yes', (values, { now }) =>
      errorAnswer(503, BUSY, retryAfterHeader(values.text('retryAfter'), now)),
    ),
  },
  'processed-then-timeout': {
    meaning: 'processes the message and never answers',
    ...MESSAGE_ONLY,
    ...instead('yes', () => ({ kind: 'silence' })),
  },
  hold: {
    meaning:
      'holds the request open until it is released (POST /sandbox/jobs/…/release) or its caller gives up',
    operations: OPERATIONS,
    parameters: {
      processed: choice(
        'when a message is processed; after the hold it is even if its caller has gone',
        ['before', 'after', 'never'],
        'before',
      ),
    },
    effect: { kind: 'hold' },
  },
  slow: {
    meaning: 'waits before it does what it would have done',
    operations: OPERATIONS,
    parameters: {
      delay: duration('how long', '2s'),
      processed: choice('when a message is processed', ['before', 'after'], 'after'),
    },
    effect: { kind: 'delay' },
  },
  drip: {
    meaning: 'answers 200 with a body that never ends',
    ...eitherWay('yes', { every: duration('between two bytes', '100ms') }, (values) => ({
      kind: 'drip',
      everyMs: Math.max(1, values.number('every')),
    })),
  },
  huge: {
    meaning: 'answers 200 with a body of many bytes',
    ...eitherWay('yes', { bytes: integer('how many', 1, 2 ** 32, String(8 * 2 ** 20)) }, (values) => ({
      kind: 'huge',
      bytes: values.number('bytes'),
    })),
  },
  truncated: {
    meaning: 'answers 200 and closes the connection in the middle of the body',
    ...eitherWay('yes', {}, () => ({ kind: 'truncated' })),
  },
  'not-json': {
    meaning: 'answers 200, says that it is JSON, and sends something else',
    ...eitherWay('yes', {}, () => ({
      kind: 'answer',
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: 'OK\n',
    })),
  },
} as const satisfies Readonly<Record<string, FaultRow>>;
