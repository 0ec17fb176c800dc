import { setMaxListeners } from 'node:events';
import type { Client } from '@temporalio/client';
import { ValueError, WorkflowNotFoundError } from '@temporalio/common';
import { isRecord } from '../contract/checks';
import { FollowUpError } from '../contract/follow-up-error';
import { ConfigurationError } from '../temporal/connection-config';
import { toStoppableClient } from '../temporal/sdk-internals';
import { serverError } from '../temporal/server-error';
import { interruptedCallError, waitTimeoutError, NotFoundError, type CallState } from './errors';
import { type OptionCheck, checkOptions, type OptionChecks, createCheck } from './options';

/** The options of every call. */
export interface CallOptions {
  /**
   * Ends the call with the signal's reason. If the signal is already aborted, the call makes no request. A request that is in
   * progress when the signal is aborted may still take effect.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * Milliseconds until the call ends as `START_UNCONFIRMED` or `WAIT_TIMEOUT`. In a list, the timeout applies to each entry. In
   * `BatchHandle.watch`, and in `streamResults` which uses it, the timeout applies to each report. Each report after the first one
   * takes at least 2 s. With a shorter timeout, the iteration therefore throws `WAIT_TIMEOUT`.
   *
   * @default none, but a workflow update such as `pollNow` or `pause` ends after 45 s, or after 2 s if no worker polls. If the Temporal
   *   server is unreachable, a call fails after about 20 s, and `progress` after about 5 s. `result`, `BatchHandle.watch` and
   *   `streamResults` keep waiting.
   */
  readonly timeout?: number | undefined;
}

/** The longest timer of Node, about 24 days. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1;

const SIGNAL_METHODS = ['addEventListener', 'removeEventListener', 'throwIfAborted'];

export const CALL_CHECKS: OptionChecks<CallOptions> = {
  signal: createCheck(
    (value) => isRecord(value) && SIGNAL_METHODS.every((name) => typeof value[name] === 'function'),
    'an AbortSignal',
  ),
  timeout: createCheck(
    (value) => typeof value === 'number' && value > 0 && value <= MAX_TIMEOUT_MS,
    `a number of milliseconds, greater than 0 and at most ${MAX_TIMEOUT_MS}`,
  ),
};

interface CallContext {
  /** The progress of the call, which its steps update. */
  readonly callState?: CallState;
  /** The checks of the options that this call accepts besides `signal` and `timeout`. */
  readonly optionChecks?: Readonly<Record<string, OptionCheck>>;
}

/** Runs all calls of a client and its handles: checks the options, applies signal and timeout, and maps the errors. */
export class CallRunner {
  /** The client that sends the requests of all calls. */
  readonly client: Client;
  readonly #pending = new Map<AbortController, CallState>();
  #isClosed = false;

  /** @param taskQueue the task queue that the workers poll for workflows */
  constructor(
    client: Client,
    readonly taskQueue: string,
  ) {
    this.client = toStoppableClient(client);
  }

  /**
   * Runs one call.
   *
   * @param work makes the requests and updates `callState` after each step; its signal is aborted if the call ends early
   * @throws the reason of `signal` if the signal is aborted, and a FollowUpError for every other error
   */
  async run<T>(
    options: CallOptions,
    work: (client: Client, signal: AbortSignal) => Promise<T>,
    { callState = {}, optionChecks = {} }: CallContext = {},
  ): Promise<T> {
    checkOptions(options, { ...optionChecks, ...CALL_CHECKS });
    const { signal, timeout } = options;
    signal?.throwIfAborted();
    if (this.#isClosed) throw clientClosedError();
    const controller = new AbortController();
    const abort = (): void => {
      controller.abort(signal?.reason);
    };
    // Node would warn about a leak if more than ten calls of a caller have the same signal.
    if (signal instanceof EventTarget) setMaxListeners(0, signal);
    signal?.addEventListener('abort', abort);
    const endWait = () => {
      controller.abort(waitTimeoutError(callState, timeout ?? 0));
    };
    const timer = timeout === undefined ? undefined : setTimeout(endWait, timeout);
    this.#pending.set(controller, callState);
    try {
      // Some work can't be cancelled, for example the caller's iterable of items, so the call does not wait until the work has
      // ended.
      const aborted = new Promise<never>((_, reject) => {
        controller.signal.addEventListener('abort', reject);
      });
      // The SDK adds a listener for each request, and some calls make many requests at the same time.
      setMaxListeners(0, controller.signal);
      const working = this.client.withAbortSignal(controller.signal, () =>
        work(this.client, controller.signal),
      );
      return await Promise.race([working, aborted]);
    } catch (error) {
      controller.signal.throwIfAborted();
      throw toFollowUpError(this.client, error, callState);
    } finally {
      this.#pending.delete(controller);
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }

  /**
   * Yields the entries of a list, or the reports of a watch. Each of them is one call with its own timeout.
   *
   * @param list makes the list; its signal is aborted when the iteration ends, so that no timer of the list stays behind
   */
  async *iterate<T>(
    options: CallOptions,
    list: (client: Client, signal: AbortSignal) => AsyncIterator<T, void>,
  ): AsyncGenerator<T, void, undefined> {
    const ended = new AbortController();
    const entries = list(this.client, ended.signal);
    try {
      for (;;) {
        const next = await this.run(options, () => entries.next());
        if (next.done === true) return;
        yield next.value;
      }
    } finally {
      ended.abort();
    }
  }

  /** Ends every call in progress and rejects all later calls with `CLIENT_CLOSED`. */
  close(): void {
    this.#isClosed = true;
    for (const [call, callState] of this.#pending) call.abort(clientClosedError(callState));
  }
}

const HEADER_FIELD = "TEMPORAL_API_KEY, or a header of your Client's connection";
const HEADER_PROBLEM = 'must have only printable ASCII characters, without a line break';

/**
 * Returns the error for a header that gRPC rejects; undefined for any other error. The message of gRPC contains the header, so
 * it is neither a part nor the cause of this error.
 */
export function invalidHeaderError(error: unknown): FollowUpError | undefined {
  for (let inner = error; inner instanceof Error; inner = inner.cause)
    if (inner.message.startsWith('Metadata string value'))
      return new ConfigurationError([{ field: HEADER_FIELD, text: HEADER_PROBLEM }]);
  return undefined;
}

function toFollowUpError({ options }: Client, error: unknown, callState: CallState): FollowUpError {
  if (error instanceof FollowUpError) return error;
  const { workflowId, unconfirmedStart } = callState;
  const knownError = invalidHeaderError(error) ?? serverError(error, options);
  if (knownError?.code === 'UNREACHABLE' && unconfirmedStart !== undefined)
    return interruptedCallError('UNREACHABLE', knownError.message, callState, knownError);
  if (knownError !== undefined) return Object.assign(knownError, { workflowId: workflowId ?? null });
  const { message } = error instanceof Error ? error : new Error(String(error));
  // The workflow was deleted during the call.
  if (error instanceof WorkflowNotFoundError)
    return new NotFoundError('NOT_FOUND', `The workflow no longer exists: ${message}`, {
      workflowId,
      cause: error,
    });
  // A codec can throw any error, and the SDK's converter throws a ValueError.
  if (error instanceof ValueError || options.loadedDataConverter.payloadCodecs.length > 0) {
    const field = "FOLLOW_UP_PLUGINS, or your Client's dataConverter";
    const text = `must be the same data converter that the workers and all other callers use; this one failed: ${message}`;
    return new ConfigurationError([{ field, text }], { cause: error });
  }
  return new FollowUpError('UNEXPECTED_FAILURE', `The call failed: ${message}`, { workflowId, cause: error });
}

/** The timeout of a request to which the Temporal server responds without a worker. */
export const SERVER_TIMEOUT_MS = 5_000;

/** The timeout of a query. A worker that must replay a long history first still responds within a second. */
export const WORKER_TIMEOUT_MS = 3_000;

export function withTimeout<T>(client: Client, timeoutMs: number, request: () => Promise<T>): Promise<T> {
  return client.withDeadline(Date.now() + timeoutMs, request);
}

function clientClosedError(callState: CallState = {}): FollowUpError {
  const reason = 'The client was closed. Started follow-ups and batches continue.';
  return interruptedCallError('CLIENT_CLOSED', reason, callState);
}
