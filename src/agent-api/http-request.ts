import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher, Pool } from 'undici';
import { isRecord } from '../contract/checks';
import { formatDuration } from '../contract/duration';
import type { RequestFailure } from '../contract/request-failure';
import { decodeBody, MAX_BODY_BYTES, TOO_LARGE } from './decode-body';
import { failureFromError } from './failure-from-error';
import type { Redact } from './redaction';

/** The result of one HTTP request. This module redacts every text of the result, so no text contains the key. */
export type HttpResult = HttpResponse | NoResponse;

export interface HttpResponse {
  readonly kind: 'response';
  readonly status: number;
  readonly headers: Readonly<Record<'location' | 'retryAfter' | 'date', string | undefined>>;
  readonly body: Body;
  /** The reason why the body is incomplete or can't be decoded, or null if the whole body was read. */
  readonly failure: RequestFailure | null;
}

/** The maximum length of a plain text that is used as an error text. A longer text is not an error message. */
const MAX_PLAIN_TEXT_CHARACTERS = 1_024;

export interface Body {
  readonly isHtml: boolean;
  /** The value of a JSON body, or a short plain text. Any other body has the value undefined. */
  readonly value?: unknown;
}

export interface NoResponse {
  readonly kind: 'no response';
  /** Whether the request may have been sent. undici calls `onRequestStart` right before it writes the first byte. */
  readonly started: boolean;
  readonly failure: RequestFailure;
}

export interface HttpRequestOptions {
  /** The timeout to the last byte of the body, in milliseconds. */
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly connectHint?: string;
  /** Called after the TLS handshake, right before the request is written. If the function returns a reason, nothing is written. */
  readonly beforeFirstByte?: (() => string | undefined) | undefined;
}

/** The connect timeout has time for this number of addresses that do not respond. */
const TRIED_ADDRESSES = 4;

/** The minimum time for one address, in milliseconds. This is Node's default. */
const MIN_ADDRESS_MS = 250;

/**
 * Returns the options of undici's connections for {@link sendHttpRequest}, which has its own timeouts for headers and bodies. Node
 * tries the addresses of a host one after another, and IPv6 and IPv4 take turns. Each address except the last one has its share of
 * the connect timeout. Node's default of 250 ms is usually too short for an address that is far away.
 *
 * @param connectTimeoutMs also closes the socket of a connection attempt that the caller has abandoned
 */
export function connectionOptions(connectTimeoutMs: number) {
  return {
    connectTimeout: connectTimeoutMs,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: Math.max(MIN_ADDRESS_MS, Math.ceil(connectTimeoutMs / TRIED_ADDRESSES)),
    headersTimeout: 0,
    bodyTimeout: 0,
  } satisfies Pool.Options;
}

/**
 * Makes one HTTP request and reads the whole response. Follows no redirects, repeats nothing, and never rejects.
 *
 * The function has its own timers. An AbortSignal does not end a request that waits for its connection, and every received byte
 * resets undici's timers.
 */
export function sendHttpRequest(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { timeoutMs, connectTimeoutMs, connectHint = '', beforeFirstByte }: HttpRequestOptions,
  redact: Redact,
): Promise<HttpResult> {
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | undefined;
    let response: ResponseHead | undefined;
    const chunks: Buffer[] = [];
    let bytes = 0;
    let isResolved = false;

    const finish = (failure: RequestFailure | null) => {
      if (isResolved) return;
      isResolved = true;
      for (const timer of timers) clearTimeout(timer);
      if (response === undefined) {
        const started = controller !== undefined;
        resolve({ kind: 'no response', started, failure: failure ?? failureFromError(undefined) });
      } else resolve(readResponse(response, chunks, failure, redact));
      try {
        controller?.abort(new Error('the HTTP request has ended'));
      } catch {
        // The result is known, so closing the connection can't change it.
      }
    };

    const origin = String(request.origin);
    const timers = [
      setTimeout(() => {
        const missing = response === undefined ? `no response from ${origin}` : 'no complete response body';
        finish({ label: 'timeout', message: `timeout: ${missing} within ${formatDuration(timeoutMs)}` });
      }, timeoutMs),
      setTimeout(() => {
        if (controller !== undefined) return;
        const text = `no connection to ${origin} within ${formatDuration(connectTimeoutMs)}`;
        finish({ label: 'connect_timeout', message: `connect timeout: ${text}${connectHint}` });
      }, connectTimeoutMs),
    ];

    dispatcher.dispatch(request, {
      onRequestStart(starting) {
        // If the request was abandoned while it was connecting, or if undici starts it again after its connection was lost, the
        // request must not be written.
        const isOver = isResolved || controller !== undefined;
        const message = isOver ? 'the HTTP request has ended' : beforeFirstByte?.();
        if (message === undefined) {
          controller = starting;
          return;
        }
        if (!isOver) finish({ label: 'held_back', message });
        starting.abort(new Error(message));
      },
      onResponseStart(_, status, headers) {
        // The statuses 100 to 199 are sent before the response.
        if (status >= 200) response = { status, headers };
      },
      onResponseData(_, chunk) {
        const room = MAX_BODY_BYTES - bytes;
        chunks.push(chunk.subarray(0, room));
        bytes += chunk.length;
        if (chunk.length > room) finish(TOO_LARGE);
      },
      onResponseEnd() {
        finish(null);
      },
      onResponseError(_, error) {
        finish(failureFromError(error, redact));
      },
    });
  });
}

interface ResponseHead {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** Reads a response and never throws, because the received status decides about a POST even if the body can't be read. */
function readResponse(
  { status, headers }: ResponseHead,
  chunks: readonly Buffer[],
  failure: RequestFailure | null,
  redact: Redact,
): HttpResponse {
  try {
    const response = { kind: 'response', status, headers: readHeaders(headers, redact) } as const;
    // The values of several header lines are one list (RFC 9110, 5.2).
    const encoding = redact([headers['content-encoding'] ?? ''].flat().join(','));
    const bytes = decodeBody(Buffer.concat(chunks), encoding);
    if ('label' in bytes) return { ...response, body: { isHtml: false }, failure: failure ?? bytes };
    return { ...response, body: parseBody(new TextDecoder().decode(bytes), redact), failure };
  } catch {
    // The error is not reported, because it may contain a part of the response, and thus of the key.
    const unreadable = { label: 'unreadable', message: 'the response could not be read' };
    const none = { location: undefined, retryAfter: undefined, date: undefined };
    return { kind: 'response', status, headers: none, body: { isHtml: false }, failure: unreadable };
  }
}

/**
 * Reads the headers that the client uses. If a header was sent more than once, undici passes a list, and the first value is
 * used.
 */
function readHeaders(headers: IncomingHttpHeaders, redact: Redact): HttpResponse['headers'] {
  const read = (name: string) => {
    const [first] = [headers[name]].flat();
    return first === undefined ? undefined : redact(first);
  };
  return { location: read('location'), retryAfter: read('retry-after'), date: read('date') };
}

/**
 * Reads a body. Each string is redacted after the JSON was parsed, so that a withheld text does not make the document invalid.
 * If a body that was cut off parses as an object, all of the object was received, because its last brace is there.
 */
export function parseBody(body: string, redact: Redact): Body {
  if (/^\s*<[!?a-z]/i.test(body)) return { isHtml: true };
  try {
    return { isHtml: false, value: readValue(JSON.parse(body), 'body', redact) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const isText = body.length <= MAX_PLAIN_TEXT_CHARACTERS && !/^\s*[[{"]/.test(body);
    return { isHtml: false, value: isText ? redact(body) : undefined };
  }
}

/**
 * The fields that are read: a job's fields and an error's messages. All other fields are ignored, because they may have up to 1
 * MiB.
 */
const FIELDS_TO_READ: Readonly<Record<string, readonly string[]>> = {
  body: 'id status prLink archivedAt createdAt source model error message detail'.split(' '),
  source: ['repository', 'ref'],
  error: ['message'],
};

function readValue(value: unknown, name: string, redact: Redact): unknown {
  if (typeof value === 'string') return redact(value);
  if (!isRecord(value)) return typeof value === 'object' ? null : value;
  const fields = (FIELDS_TO_READ[name] ?? []).map((field) => [field, readValue(value[field], field, redact)]);
  return Object.fromEntries(fields);
}
