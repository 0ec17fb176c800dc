import { AsyncLocalStorage } from 'node:async_hooks';
import { setMaxListeners } from 'node:events';
import type { Client } from '@temporalio/client';
import { ValueError, WorkflowNotFoundError } from '@temporalio/common';
import { FollowUpError } from '../core/errors';
import { quote } from '../core/text';
import { ConfigurationError } from '../temporal/config';
import { describeWorkflow } from '../temporal/existing-run';
import { serverError } from '../temporal/server-error';
import { workersPolling } from '../temporal/sdk-internals';
import { endedEarly, invalid, noAnswer, NotFoundError, type Reached, refuse, silence } from './errors';
import { unknownOptions } from './options';

/** What every call takes. */
export interface CallOptions {
  /**
   * Ends the call with the signal's reason. Nothing is asked of the server any more; what it was asked before may still take
   * effect.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * Milliseconds until the call, or the next entry of a list, ends as `NOT_CONFIRMED` or `NO_ANSWER`. @default none; a server
   * that is away is tried for some 20 s
   */
  readonly timeout?: number | undefined;
}

/** The longest timer of Node, some 24 days. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** How long before its time-out a call asks how what it waits for stands. */
const ASKED_BEFORE_MS = 2_000;

interface Call extends CallOptions {
  readonly reached?: Reached;
  /** Names of further options of the call. */
  readonly others?: readonly string[];
}

/** The signal of the call under way. One for all clients: Node asks each storage about each promise, for ever. */
const signals = new AsyncLocalStorage<AbortSignal>();

/** Where every call of a client and its handles begins and ends. */
export class Calls {
  readonly #pending = new Map<AbortController, Reached>();
  #isClosed = false;
  readonly client: Client;

  /** @param taskQueue where the workers poll for workflows */
  constructor(
    client: Client,
    readonly taskQueue: string,
  ) {
    this.client = endable(client);
  }

  /**
   * @param work keeps `reached` up to date; its signal is aborted when the call is over
   * @throws FollowUpError, whatever went wrong, or the reason of `signal`
   */
  async run<T>(
    { reached = {}, others = [], ...options }: Call,
    work: (client: Client, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { signal, timeout } = options;
    signal?.throwIfAborted();
    if (this.#isClosed) throw closed();
    refuse(unknownOptions(options, ['signal', 'timeout', ...others]));
    checkTimeout(timeout);
    const call = new AbortController();
    // The SDK adds a listener for each request, and some calls make many at a time.
    setMaxListeners(0, call.signal);
    const abort = (): void => {
      call.abort(signal?.reason);
    };
    signal?.addEventListener('abort', abort);
    const abortable = <R>(asking: () => Promise<R>) =>
      signals.run(call.signal, () => this.client.withAbortSignal(call.signal, asking));
    const timers: NodeJS.Timeout[] = [];
    if (timeout !== undefined) {
      let standing: string | undefined;
      // What the server does not tell in time is left out.
      const ask = async (): Promise<void> => {
        standing = await abortable(() => standingOf(this.client, reached)).catch(() => undefined);
      };
      timers.push(
        setTimeout(() => void ask(), Math.max(timeout / 2, timeout - ASKED_BEFORE_MS)),
        setTimeout(() => {
          call.abort(noAnswer(reached, timeout, standing));
        }, timeout),
      );
    }
    this.#pending.set(call, reached);
    try {
      // The SDK gives up an aborted request only while it makes its first attempt (1.24), so the two race.
      const over = new Promise<never>((_, reject) => {
        call.signal.addEventListener('abort', reject);
      });
      return await Promise.race([abortable(() => work(this.client, call.signal)), over]);
    } catch (error) {
      call.signal.throwIfAborted();
      throw inWords(this.client, error, reached);
    } finally {
      this.#pending.delete(call);
      timers.forEach(clearTimeout);
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

  /** Ends every call, and refuses further ones. */
  close(): void {
    this.#isClosed = true;
    for (const [call, reached] of this.#pending) call.abort(closed(reached));
  }
}

/**
 * A client that asks nothing once the signal of the call is aborted, as while items are read or encoded. The SDK (1.24) does not
 * look whether it is aborted already.
 */
function endable(client: Client): Client {
  const workflowService = new Proxy(client.workflowService, {
    get(service, method) {
      signals.getStore()?.throwIfAborted();
      const own: unknown = Reflect.get(service, method);
      // A native connection's service calls itself when its answer comes, perhaps after the end of the call.
      return typeof own === 'function' ? (own.bind(service) as unknown) : own;
    },
  });
  const on = (part: object, parts: object) => ({ value: Object.create(part, { ...parts }) as unknown });
  const connection = on(client.connection, { workflowService: { value: workflowService } });
  const [workflow, schedule] = [client.workflow, client.schedule].map((part) => on(part, { connection }));
  return on(client, { connection, workflow, schedule }).value as Client;
}

/** How the workflow that a call waits for stands. */
async function standingOf(client: Client, { workflowId }: Reached): Promise<string | undefined> {
  const found = workflowId === undefined ? null : await describeWorkflow(client, workflowId);
  if (!found || found.closeTime !== undefined) return undefined;
  const workers = await workersPolling(client, found.taskQueue);
  return workers.length === 0 ? silence(found.taskQueue, 0) : 'it still runs';
}

function inWords({ options }: Client, error: unknown, reached: Reached): FollowUpError {
  if (error instanceof FollowUpError) return error;
  const { workflowId, unconfirmed } = reached;
  const told = serverError(error, options);
  if (told?.code === 'UNREACHABLE' && unconfirmed !== undefined)
    return endedEarly('UNREACHABLE', told.message, reached, told);
  if (told !== undefined) return Object.assign(told, { workflowId: workflowId ?? null });
  const { message } = error instanceof Error ? error : new Error(String(error));
  // It was deleted meanwhile.
  if (error instanceof WorkflowNotFoundError)
    return new NotFoundError('NOT_FOUND', `The workflow is gone: ${message}`, { workflowId, cause: error });
  // A codec throws what it likes, and the SDK's converter a ValueError.
  if (error instanceof ValueError || options.loadedDataConverter.payloadCodecs.length > 0) {
    const field = "FOLLOW_UP_DATA_CONVERTER, or your Client's dataConverter";
    const text = `must be the data converter of the workers and of all other callers: this one fails (${message})`;
    return new ConfigurationError([{ field, text }], { cause: error });
  }
  return new FollowUpError('UNEXPECTED_FAILURE', `The call failed: ${message}`, { workflowId, cause: error });
}

export const SERVER_LIMIT_MS = 5_000;

/** A worker that has to replay a long history answers within a second. */
export const WORKER_LIMIT_MS = 3_000;

export function within<T>(client: Client, limitMs: number, ask: () => Promise<T>): Promise<T> {
  return client.withDeadline(Date.now() + limitMs, ask);
}

/** @throws InvalidRequestError */
export function checkTimeout(timeout: unknown): void {
  if (timeout === undefined) return;
  if (typeof timeout === 'number' && timeout > 0 && timeout <= MAX_TIMEOUT_MS) return;
  const text = `must be milliseconds, more than 0 and at most ${MAX_TIMEOUT_MS}; it is ${quote(timeout)}`;
  throw invalid('timeout', text);
}

function closed(reached: Reached = {}): FollowUpError {
  return endedEarly('CLOSED', 'The client was closed. What was started continues.', reached);
}
