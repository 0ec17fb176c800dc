import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';

/** What the wire is let in with at most; a job is a few hundred bytes. */
const MAX_BODY_BYTES = 1_048_576;

/** How one HTTP exchange ended. */
export type Exchange = Answer | NoAnswer;

/** A status line arrived. */
export interface Answer {
  readonly kind: 'answer';
  readonly status: number;
  /** The first of each name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** As much of the body as was read, at most 1 MiB. */
  readonly body: string;
  /** How the body ended. */
  readonly end: 'complete' | 'too large' | 'timeout' | { readonly error: unknown };
}

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
    | { readonly by: 'error'; readonly error: unknown };
}

export interface ExchangeLimits {
  /** From now to the last byte of the body, in milliseconds. */
  readonly timeoutMs: number;
  /** From now to the first byte of the request, in milliseconds. */
  readonly connectTimeoutMs: number;
  /** Asked once the connection is made; the reason that it returns keeps the request from being written. */
  readonly beforeFirstByte?: (() => string | undefined) | undefined;
}

/** One request and its whole answer, within limits. Nothing is followed, and nothing is tried twice. Never rejects. */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  limits: ExchangeLimits,
): Promise<Exchange> {
  return new Promise((resolve) => {
    dispatcher.dispatch(request, new ExchangeHandler(limits, resolve));
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
      this.fail({ by: 'caller', why });
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
    if (status >= 200) this.answer = { status, headers: firstOfEach(headers) };
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
    if (this.answer === undefined) this.fail({ by: 'error', error });
    else this.end({ error });
  }

  private timeOut(): void {
    if (this.answer === undefined) this.fail({ by: 'timeout' });
    else this.end('timeout');
  }

  private end(end: Answer['end']): void {
    if (this.answer === undefined) return;
    const body = new TextDecoder().decode(Buffer.concat(this.chunks));
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
function firstOfEach(headers: IncomingHttpHeaders): Answer['headers'] {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat()[0]]));
}
