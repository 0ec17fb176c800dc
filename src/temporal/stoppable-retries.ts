import type { AsyncLocalStorage } from 'node:async_hooks';
import { type CallContext, defaultGrpcRetryOptions, type WorkflowService } from '@temporalio/client';

/** Sends one encoded request and passes the response or the error to the callback. */
type SendRequest = Parameters<typeof WorkflowService.create>[0];
type ResponseCallback = Parameters<SendRequest>[2];

/**
 * Retries requests to the Temporal server as the SDK does, but leaves nothing behind. The retries of SDK 1.24 ignore an aborted
 * signal. If such a retry is due after its connection was closed, the retry throws in a timer, which ends the process.
 */
export class StoppableRetries {
  private readonly defaults = defaultGrpcRetryOptions();
  private readonly waits = new Set<() => void>();
  private retryUntil = Infinity;

  /** Permits retries only until this time. @param until the time of `performance.now()`, in milliseconds */
  limit(until: number): void {
    this.retryUntil = until;
  }

  /** Ends every wait for a retry with the error of the last attempt, and permits no further retry. */
  stop(): void {
    this.retryUntil = 0;
    for (const endWait of [...this.waits]) endWait();
  }

  /** Adds the retries to a function that sends one request. @param contexts the signal and the deadline of each request */
  wrap(sendRequest: SendRequest, contexts: AsyncLocalStorage<CallContext>): SendRequest {
    return (method, request, callback) => {
      const context = contexts.getStore();
      const signal = context?.abortSignal;
      let attempts = 0;
      const attempt = (lastError?: Error): void => {
        attempts += 1;
        const controller = new AbortController();
        const cancel = (): void => {
          controller.abort();
        };
        const handleResponse: ResponseCallback = (error, response) => {
          signal?.removeEventListener('abort', cancel);
          if (error === null || signal?.aborted === true || !this.shouldRetry(attempts, error))
            callback(error, response);
          else this.waitForRetry(this.delayMs(attempts, error), signal, { attempt, callback, error });
        };
        try {
          // The SDK never removes its listener from a signal, so each attempt has its own signal.
          contexts.run({ ...context, abortSignal: controller.signal }, () => {
            sendRequest(method, request, handleResponse);
          });
        } catch (error) {
          // gRPC throws if the connection was closed.
          callback(lastError ?? (error as Error));
          return;
        }
        if (signal?.aborted === true) cancel();
        else signal?.addEventListener('abort', cancel);
      };
      attempt();
    };
  }

  private shouldRetry(attempts: number, error: Error): boolean {
    return performance.now() < this.retryUntil && this.defaults.retryableDecider(attempts, error as never);
  }

  private delayMs(attempts: number, error: Error): number {
    return this.defaults.delayFunction(attempts, error as never);
  }

  /** Waits for the next attempt. If the signal is aborted or the retries are stopped, the request ends with the error instead. */
  private waitForRetry(
    delayMs: number,
    signal: AbortSignal | undefined,
    {
      attempt,
      callback,
      error,
    }: {
      readonly attempt: (lastError: Error) => void;
      readonly callback: ResponseCallback;
      readonly error: Error;
    },
  ): void {
    const endWait = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
      this.waits.delete(stop);
    };
    const stop = (): void => {
      endWait();
      callback(error);
    };
    const timer = setTimeout(() => {
      endWait();
      attempt(error);
    }, delayMs);
    signal?.addEventListener('abort', stop);
    this.waits.add(stop);
  }
}
