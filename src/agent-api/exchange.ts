import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { type ErrorFact, redactedFacts } from './error-facts';

/** What the wire is let in with at most; a job is a few hundred bytes. */
const MAX_BODY_BYTES = 1_048_576;

/** How one HTTP exchange ended. No text of it holds the key: this is where they all come in. */
export type Exchange = Answer | NoAnswer;

/** A status line arrived. */
export interface Answer {
  readonly kind: 'answer';
  readonly status: number;
  /** The first of each name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Body;
  /** How the body ended. */
  readonly end: 'complete' | 'too large' | 'timeout' | readonly ErrorFact[];
}

/** More of an unstructured text than this is a dump, not a message. */
const MAX_PLAIN_TEXT_CHARACTERS = 1_024;

/** What was read of a body: a JSON value, markup (a portal's page, a proxy's), a short text, or something else. */
export type Body =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'html' | 'other' }
  | { readonly kind: 'text'; readonly text: string };

export interface NoAnswer {
  readonly kind: 'no answer';
  /**
   * Whether the first byte of the request may have left: undici announces a request on its connection (TLS included)
   * immediately before it writes. Before that nothing can have been sent, for any error.
   */
  readonly started: boolean;
  readonly reason:
    | { readonly by: 'timeout' | 'connect timeout' }
    /** `beforeFirstByte` refused. */
    | { readonly by: 'caller'; readonly why: string }
    | { readonly by: 'error'; readonly facts: readonly ErrorFact[] };
}

export interface ExchangeLimits {
  /** From now to the last byte of the body, in milliseconds. */
  readonly timeoutMs: number;
  /** From now to the first byte of the request, in milliseconds. */
  readonly connectTimeoutMs: number;
  /** Asked once the connection is made; the reason that it returns keeps the request from being written. */
  readonly beforeFirstByte?: (() => string | undefined) | undefined;
}

/**
 * One request and its whole answer, within limits. Nothing is followed, and nothing is tried twice. Never rejects.
 *
 * @param redact hides the key in a text
 */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  limits: ExchangeLimits,
  redact: (text: string) => string,
): Promise<Exchange> {
  return new Promise((resolve) => {
    dispatcher.dispatch(request, new ExchangeHandler(limits, redact, resolve));
  });
}

/**
 * Follows a request through undici. Timers of our own bound it: an AbortSignal would not end a request that waits for
 * its connection, and undici's own timers are reset by every byte and run on a clock of half a second.
 */
class ExchangeHandler implements Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | undefined;
  private answer: Pick<Answer, 'status' | 'headers'> | undefined;
  private readonly chunks: Buffer[] = [];
  private bytes = 0;
  private settled = false;
  private readonly timers: NodeJS.Timeout[];

  constructor(
    private readonly limits: ExchangeLimits,
    private readonly redact: (text: string) => string,
    private readonly resolve: (exchange: Exchange) => void,
  ) {
    this.timers = [
      setTimeout(() => {
        this.timeOut();
      }, limits.timeoutMs),
      setTimeout(() => {
        if (this.controller === undefined) this.fail({ by: 'connect timeout' });
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
    const why = this.limits.beforeFirstByte?.();
    if (why !== undefined) {
      this.fail({ by: 'caller', why: this.redact(why) });
      controller.abort(new Error(why));
      return;
    }
    this.controller = controller;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    // 100 to 199 announce the answer, they are none.
    if (status >= 200) this.answer = { status, headers: firstOfEach(headers, this.redact) };
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const room = MAX_BODY_BYTES - this.bytes;
    this.chunks.push(chunk.subarray(0, room));
    this.bytes += chunk.length;
    if (chunk.length > room) this.end('too large');
  }

  onResponseEnd(): void {
    this.end('complete');
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: unknown): void {
    const facts = redactedFacts(error, this.redact);
    if (this.answer === undefined) this.fail({ by: 'error', facts });
    else this.end(facts);
  }

  private timeOut(): void {
    if (this.answer === undefined) this.fail({ by: 'timeout' });
    else this.end('timeout');
  }

  private end(end: Answer['end']): void {
    if (this.answer === undefined) return;
    const body = bodyOf(new TextDecoder().decode(Buffer.concat(this.chunks)), this.redact);
    this.settle({ kind: 'answer', ...this.answer, body, end });
  }

  private fail(reason: NoAnswer['reason']): void {
    this.settle({ kind: 'no answer', started: this.controller !== undefined, reason });
  }

  private settle(exchange: Exchange): void {
    if (this.settled) return;
    this.settled = true;
    for (const timer of this.timers) clearTimeout(timer);
    this.resolve(exchange);
    // Destroys the connection of an exchange that is not complete; does nothing to one that is.
    this.controller?.abort(new Error('the exchange is over'));
  }
}

/** A service may send any header twice; undici hands on a list then, whatever the type of its `location` says. */
function firstOfEach(headers: IncomingHttpHeaders, redact: (text: string) => string): Answer['headers'] {
  const entries = Object.entries(headers).map(([name, value]) => [name, [value].flat()[0]] as const);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, value === undefined ? undefined : redact(value)]),
  );
}

/**
 * JSON is redacted after it was parsed, text by text: escapes of JSON have no part in a key then, and what stands for the
 * key can't break the document. A truncated body that parses as an object is whole, for its last brace is there.
 */
export function bodyOf(body: string, redact: (text: string) => string): Body {
  if (/^\s*<[!?a-z]/i.test(body)) return { kind: 'html' };
  try {
    const value: unknown = JSON.parse(body, (_name, each: unknown) =>
      typeof each === 'string' ? redact(each) : each,
    );
    return { kind: 'json', value };
  } catch {
    // What looks like JSON was cut off.
    const isText = body.length <= MAX_PLAIN_TEXT_CHARACTERS && !/^\s*[[{"]/.test(body);
    return isText ? { kind: 'text', text: redact(body) } : { kind: 'other' };
  }
}
