import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { isRecord } from '../core/checks';
import { formatDuration } from '../core/units';
import type { SendTrouble } from '../core/activities';
import type { Redact } from './redaction';
import { errorTrouble } from './trouble';

/** The most that is read of a body; a job is a few hundred bytes. */
const MAX_BODY_BYTES = 1_048_576;

/** How one HTTP exchange ended. No text of it holds the key: this is where they all come in. */
export type Exchange = Answer | NoAnswer;

export interface Answer {
  readonly kind: 'answer';
  readonly status: number;
  readonly headers: Readonly<Record<'location' | 'retryAfter' | 'date', string | undefined>>;
  readonly body: Body;
  /** Why the body is not whole; null where it is. */
  readonly brokenBy: SendTrouble | null;
}

/** A longer text without structure is a dump, not a message. */
const MAX_PLAIN_TEXT_CHARACTERS = 1_024;

export interface Body {
  readonly isHtml: boolean;
  /** Of JSON, or a short text as it is; undefined for anything else. */
  readonly value?: unknown;
}

export interface NoAnswer {
  readonly kind: 'no answer';
  /** Whether the first byte may have left: undici announces a request on its connection (TLS included) right before it writes. */
  readonly started: boolean;
  readonly brokenBy: SendTrouble & { readonly retryAfterMs?: number };
}

export interface ExchangeLimits {
  /** To the last byte of the body, in milliseconds. */
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly connectHint?: string;
  /** Asked once the connection is made (TLS included): a reason that it returns keeps the request from being written. */
  readonly beforeFirstByte?: (() => string | undefined) | undefined;
}

/**
 * One request and its whole answer. Nothing is followed, and nothing is tried twice. Never rejects.
 *
 * Timers of our own bound it: an AbortSignal would not end a request that waits for its connection, and undici's own timers are
 * reset by every byte.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { timeoutMs, connectTimeoutMs, connectHint = '', beforeFirstByte }: ExchangeLimits,
  redact: Redact,
): Promise<Exchange> {
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | undefined;
    let answer: Pick<Answer, 'status' | 'headers'> | undefined;
    const chunks: Buffer[] = [];
    let bytes = 0;
    let settled = false;

    const end = (brokenBy: SendTrouble | null) => {
      if (settled) return;
      settled = true;
      for (const timer of timers) clearTimeout(timer);
      if (answer === undefined) {
        const started = controller !== undefined;
        resolve({ kind: 'no answer', started, brokenBy: brokenBy ?? errorTrouble(undefined) });
      } else {
        const body = bodyOf(new TextDecoder().decode(Buffer.concat(chunks)), redact);
        resolve({ kind: 'answer', ...answer, body, brokenBy });
      }
      controller?.abort(new Error('the exchange is over'));
    };

    const origin = String(request.origin);
    const timers = [
      setTimeout(() => {
        const missing = answer === undefined ? `no answer from ${origin}` : 'no complete body';
        end({ label: 'timeout', message: `timeout: ${missing} within ${formatDuration(timeoutMs)}` });
      }, timeoutMs),
      setTimeout(() => {
        if (controller !== undefined) return;
        const words = `no connection to ${origin} within ${formatDuration(connectTimeoutMs)}`;
        end({ label: 'connect timeout', message: `connect timeout: ${words}${connectHint}` });
      }, connectTimeoutMs),
    ];

    dispatcher.dispatch(request, {
      onRequestStart(starting) {
        // Given up while it was connecting; or undici, which may start a request again after its connection was lost,
        // would write it a second time.
        const isOver = settled || controller !== undefined;
        const message = isOver ? 'the exchange is over' : beforeFirstByte?.();
        if (message === undefined) {
          controller = starting;
          return;
        }
        if (!isOver) end({ label: 'held back', message });
        starting.abort(new Error(message));
      },
      onResponseStart(_, status, headers) {
        // 100 to 199 only announce the answer.
        if (status >= 200) answer = { status, headers: readHeaders(headers, redact) };
      },
      onResponseData(_, chunk) {
        const room = MAX_BODY_BYTES - bytes;
        chunks.push(chunk.subarray(0, room));
        bytes += chunk.length;
        if (chunk.length > room) end({ label: 'too large', message: 'the body has more than 1 MiB' });
      },
      onResponseEnd() {
        end(null);
      },
      onResponseError(_, error) {
        end(errorTrouble(error, redact.text));
      },
    });
  });
}

/** The only headers that are read. A service may send each twice; undici hands on a list then. */
function readHeaders(headers: IncomingHttpHeaders, redact: Redact): Answer['headers'] {
  const read = (name: string) => {
    const [first] = [headers[name]].flat();
    return first === undefined ? undefined : redact.text(first);
  };
  return { location: read('location'), retryAfter: read('retry-after'), date: read('date') };
}

/** Of a whole body, as redaction takes time. A field that goes beyond is left out, and a message is cut before it is redacted. */
const MAX_READ_CHARACTERS = 16_384;

/** What a cut message loses after it is redacted: the cut may have left half a key, of a hundred characters spelled by eighty each. */
const TAIL_CHARACTERS = MAX_READ_CHARACTERS / 2;

/**
 * JSON is redacted after it was parsed, text by text: escapes of JSON have no part in a key then, and what stands for the
 * key can't break the document. A truncated body that parses as an object is whole, for its last brace is there.
 */
export function bodyOf(body: string, redact: Redact): Body {
  if (/^\s*<[!?a-z]/i.test(body)) return { isHtml: true };
  try {
    return { isHtml: false, value: readValue(JSON.parse(body), redact) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const isText = body.length <= MAX_PLAIN_TEXT_CHARACTERS && !/^\s*[[{"]/.test(body);
    return { isHtml: false, value: isText ? redact.text(body) : undefined };
  }
}

/** What is read of a body: a job's fields and an error's messages. A hostile service may send 1 MiB of others. */
const READ: Readonly<Record<string, readonly string[]>> = {
  body: 'id status prLink archivedAt createdAt source model error message detail'.split(' '),
  source: ['repository', 'ref'],
  error: ['message'],
};
const MESSAGES = new Set(['body', 'error', 'message', 'detail']);

function readValue(body: unknown, redact: Redact): unknown {
  let left = MAX_READ_CHARACTERS;
  const read = (value: unknown, name: string): unknown => {
    if (typeof value === 'string') {
      const isMessage = MESSAGES.has(name);
      const isLong = value.length > left;
      if (isLong && !isMessage) return '';
      const cut = value.slice(0, left);
      left -= cut.length;
      const shown = isMessage ? redact.text(cut) : redact.field(cut);
      return isLong ? shown.slice(0, -TAIL_CHARACTERS) : shown;
    }
    if (!isRecord(value)) return typeof value === 'object' ? null : value;
    return Object.fromEntries((READ[name] ?? []).map((part) => [part, read(value[part], part)]));
  };
  return read(body, 'body');
}
