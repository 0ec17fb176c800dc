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

/** More of an unstructured text than this is a dump, not a message. */
const MAX_PLAIN_TEXT_CHARACTERS = 1_024;

export type Body =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'html' | 'other' }
  | { readonly kind: 'text'; readonly text: string };

interface NoAnswer {
  readonly kind: 'no answer';
  /** Whether the first byte may have left: undici announces a request on its connection (TLS included) right before it writes. */
  readonly started: boolean;
  readonly brokenBy: SendTrouble;
}

export interface ExchangeLimits {
  /** To the last byte of the body, in milliseconds. */
  readonly timeoutMs: number;
  /** To the first byte of the request. */
  readonly connectTimeoutMs: number;
  readonly connectHint?: string;
  /** Asked once the connection is made; the reason that it returns keeps the request from being written. */
  readonly beforeFirstByte?: (() => string | undefined) | undefined;
}

/** One request and its whole answer. Nothing is followed, and nothing is tried twice. Never rejects. */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  limits: ExchangeLimits,
  redact: Redact,
): Promise<Exchange> {
  return new Promise((resolve) => {
    dispatcher.dispatch(request, new ExchangeHandler(String(request.origin), limits, redact, resolve));
  });
}

/**
 * Timers of our own bound it: an AbortSignal would not end a request that waits for its connection, and undici's own timers are
 * reset by every byte.
 */
class ExchangeHandler implements Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | undefined;
  private answer: Pick<Answer, 'status' | 'headers'> | undefined;
  private readonly chunks: Buffer[] = [];
  private bytes = 0;
  private settled = false;
  private readonly timers: NodeJS.Timeout[];

  constructor(
    origin: string,
    private readonly limits: ExchangeLimits,
    private readonly redact: Redact,
    private readonly resolve: (exchange: Exchange) => void,
  ) {
    this.timers = [
      setTimeout(() => {
        const missing = this.answer === undefined ? `no answer from ${origin}` : 'no complete body';
        const message = `timeout: ${missing} within ${formatDuration(limits.timeoutMs)}`;
        this.end({ label: 'timeout', message });
      }, limits.timeoutMs),
      setTimeout(() => {
        if (this.controller !== undefined) return;
        const label = 'connect timeout';
        const within = formatDuration(limits.connectTimeoutMs);
        const message = `${label}: no connection to ${origin} within ${within}${limits.connectHint ?? ''}`;
        this.end({ label, message });
      }, limits.connectTimeoutMs),
    ];
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Given up while it was connecting; or undici, which may start a request again after its connection was lost,
    // would write it a second time.
    if (this.settled || this.controller !== undefined) {
      controller.abort(new Error('the exchange is over'));
      return;
    }
    const message = this.limits.beforeFirstByte?.();
    if (message !== undefined) {
      this.end({ label: 'held back', message });
      controller.abort(new Error(message));
      return;
    }
    this.controller = controller;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    // 100 to 199 only announce the answer.
    if (status >= 200) this.answer = { status, headers: readHeaders(headers, this.redact.text) };
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const room = MAX_BODY_BYTES - this.bytes;
    this.chunks.push(chunk.subarray(0, room));
    this.bytes += chunk.length;
    if (chunk.length > room) this.end({ label: 'too large', message: 'the body has more than 1 MiB' });
  }

  onResponseEnd(): void {
    this.end(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: unknown): void {
    this.end(errorTrouble(error, this.redact.text));
  }

  private end(brokenBy: SendTrouble | null): void {
    if (this.settled) return;
    this.settled = true;
    for (const timer of this.timers) clearTimeout(timer);
    if (this.answer === undefined) {
      const started = this.controller !== undefined;
      this.resolve({ kind: 'no answer', started, brokenBy: brokenBy ?? errorTrouble(undefined) });
    } else {
      const body = bodyOf(new TextDecoder().decode(Buffer.concat(this.chunks)), this.redact);
      this.resolve({ kind: 'answer', ...this.answer, body, brokenBy });
    }
    // Does nothing to one that is complete.
    this.controller?.abort(new Error('the exchange is over'));
  }
}

/** The only headers that are read. A service may send each twice; undici hands on a list then. */
function readHeaders(headers: IncomingHttpHeaders, redact: ReadText): Answer['headers'] {
  const read = (name: string) => {
    const [first] = [headers[name]].flat();
    return first === undefined ? undefined : redact(first);
  };
  return { location: read('location'), retryAfter: read('retry-after'), date: read('date') };
}

/** No field is as long, so a longer one is left out. A message is cut here before it is redacted, which takes time. */
const MAX_TEXT_CHARACTERS = 16_384;

/** What a cut message loses after it is redacted: the cut may have left half a key, of a hundred characters spelled by eighty each. */
const TAIL_CHARACTERS = MAX_TEXT_CHARACTERS / 2;

/**
 * JSON is redacted after it was parsed, text by text: escapes of JSON have no part in a key then, and what stands for the
 * key can't break the document. A truncated body that parses as an object is whole, for its last brace is there.
 */
export function bodyOf(body: string, redact: Redact): Body {
  if (/^\s*<[!?a-z]/i.test(body)) return { kind: 'html' };
  try {
    return { kind: 'json', value: readValue(JSON.parse(body), true, redact) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    // What looks like JSON was cut off.
    const isText = body.length <= MAX_PLAIN_TEXT_CHARACTERS && !/^\s*[[{"]/.test(body);
    return isText ? { kind: 'text', text: redact.text(body) } : { kind: 'other' };
  }
}

type ReadText = (text: string) => string;

/** What is read of a body: an error's messages and a job's fields. A hostile service may send 1 MiB of others. */
const MESSAGES = new Set(['error', 'message', 'detail']);
const FIELDS = new Set('id status source repository ref model prLink createdAt archivedAt'.split(' '));

function readValue(value: unknown, isMessage: boolean, redact: Redact, depth = 2): unknown {
  if (typeof value === 'string') {
    const isLong = value.length > MAX_TEXT_CHARACTERS;
    if (!isMessage) return isLong ? '' : redact.field(value);
    const shown = redact.text(value.slice(0, MAX_TEXT_CHARACTERS));
    return isLong ? shown.slice(0, -TAIL_CHARACTERS) : shown;
  }
  if (!isRecord(value)) return typeof value === 'object' ? null : value;
  const read = Object.entries(depth > 0 ? value : {}).filter(
    ([name]) => MESSAGES.has(name) || FIELDS.has(name),
  );
  return Object.fromEntries(
    read.map(([name, inner]) => [name, readValue(inner, MESSAGES.has(name), redact, depth - 1)]),
  );
}
