import { setMaxListeners } from 'node:events';
import type { Client } from '@temporalio/client';
import { FollowUpError } from '../core/errors';
import { quote } from '../core/text';
import { inSetUpWords } from '../temporal/search-attributes';
import { InvalidRequestError, NoAnswerError } from './errors';

/** What every call takes. */
export interface CallOptions {
  /**
   * Ends the call with the signal's reason. A signal that is aborted before the call starts nothing; what a call has begun
   * may still take effect, and what was started continues.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * Milliseconds until the call ends with `NO_ANSWER`, for each entry of a list. What the call has begun may still take
   * effect. @default none; a server that is away is tried for some 20 s
   */
  readonly timeout?: number | undefined;
}

/** The longest timer of Node, some 24 days. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** The connection that a client and its handles share, and the one place where calls begin and end. */
export class Calls {
  readonly #pending = new Set<AbortController>();
  #isClosed = false;

  /** @param taskQueue where the workers poll for workflows */
  constructor(
    readonly client: Client,
    readonly taskQueue: string,
  ) {}

  /**
   * @param work gets a signal that is aborted when the call is over
   * @throws FollowUpError also for whatever the transport throws; the reason of `signal`
   */
  async run<T>(
    { signal, timeout }: CallOptions,
    work: (client: Client, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    signal?.throwIfAborted();
    if (this.#isClosed) throw closed();
    checkTimeout(timeout);
    const call = new AbortController();
    // The SDK adds a listener for each request, and some calls make many at a time.
    setMaxListeners(0, call.signal);
    const abort = (): void => {
      call.abort(signal?.reason);
    };
    signal?.addEventListener('abort', abort);
    const giveUp = (): void => {
      call.abort(new NoAnswerError('NO_ANSWER', `There was no answer within ${Number(timeout) / 1_000} s.`));
    };
    const timer = timeout === undefined ? undefined : setTimeout(giveUp, timeout);
    this.#pending.add(call);
    try {
      // The SDK gives up an aborted request only while it makes its first attempt (1.24), so the two race.
      const over = new Promise<never>((_, reject) => {
        call.signal.addEventListener('abort', reject);
      });
      const working = this.client.withAbortSignal(call.signal, () => work(this.client, call.signal));
      return await Promise.race([working, over]);
    } catch (error) {
      call.signal.throwIfAborted();
      throw inSetUpWords(error, this.client.options.namespace);
    } finally {
      this.#pending.delete(call);
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }

  async *each<T>(
    options: CallOptions,
    list: (client: Client) => AsyncIterator<T, void>,
  ): AsyncGenerator<T, void, undefined> {
    const entries = list(this.client);
    for (;;) {
      const next = await this.run(options, () => entries.next());
      if (next.done === true) return;
      yield next.value;
    }
  }

  /** Ends every call that waits, and refuses further ones. */
  close(): void {
    this.#isClosed = true;
    for (const call of this.#pending) call.abort(closed());
  }
}

export const SERVER_LIMIT_MS = 5_000;

/** A worker answers a query within milliseconds; one that has to replay a long history first, within a second. */
export const WORKER_LIMIT_MS = 3_000;

export function within<T>(client: Client, limitMs: number, ask: () => Promise<T>): Promise<T> {
  return client.withDeadline(Date.now() + limitMs, ask);
}

/** @throws InvalidRequestError */
export function checkTimeout(timeout: unknown): void {
  if (timeout === undefined) return;
  if (typeof timeout === 'number' && timeout > 0 && timeout <= MAX_TIMEOUT_MS) return;
  const text = `must be milliseconds, more than 0 and at most ${MAX_TIMEOUT_MS}; it is ${quote(timeout)}`;
  throw new InvalidRequestError([{ field: 'timeout', text }]);
}

function closed(): FollowUpError {
  return new FollowUpError('CLOSED', 'The client was closed. What was started continues.');
}
