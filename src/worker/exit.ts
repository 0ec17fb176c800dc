import { constants } from 'node:os';
import type { Logger } from '@temporalio/worker';
import { BundleError } from './bundle';
import { ConfigurationError } from './config';
import { HopelessError } from './temporal';

/** The exit codes of the worker. With 2, starting it again without a change does not help. */
export const EXIT = { drained: 0, failed: 1, misconfigured: 2 } as const;

/**
 * Says why the worker could not start or go on, and returns the exit code for it. A problem that a person must fix goes to
 * stderr in plain words. Anything else is a failure of the process, and goes to the log with its stack.
 */
export function exitCode(error: unknown, logger?: Logger): number {
  if (error instanceof ConfigurationError) {
    process.stderr.write(`${error.message}\n`);
    return EXIT.misconfigured;
  }
  if (error instanceof HopelessError || error instanceof BundleError) {
    logger?.error(`the worker cannot start: ${error.message}`);
    return EXIT.failed;
  }
  if (logger === undefined) process.stderr.write(`the worker cannot start: ${String(error)}\n`);
  else logger.error('the worker ends because of an unexpected error', { error });
  return EXIT.failed;
}

/**
 * An uncaught error ends the process, as it would anyway. Here its text passes the redactor, unlike Node's own report on
 * stderr.
 */
export function endOnBug(logger: Logger): void {
  process.on('uncaughtException', (error) => {
    logger.error('the worker ends because of a bug', { error });
    process.exit(EXIT.failed);
  });
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * Signals within this time of the first are the same gesture: a Ctrl-C reaches the worker from the terminal, and again
 * from npm, which passes it on to its child. Nobody decides in less than a second to abandon a drain.
 */
const SAME_GESTURE_MS = 1_000;

/**
 * Makes the first SIGTERM or SIGINT drain the process. A later one ends it at once with the exit code that a shell gives
 * for the signal (143, 130).
 *
 * @returns aborted by the first signal
 */
export function onShutdownSignals(logger: Logger): AbortSignal {
  const controller = new AbortController();
  let firstAt = 0;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (!controller.signal.aborted) {
        firstAt = performance.now();
        logger.info(`${signal}: shutting down; a further signal ends the process at once`);
        controller.abort(new Error(`${signal} received`));
      } else if (performance.now() - firstAt > SAME_GESTURE_MS) {
        logger.warn(`${signal} again: ending at once; the delivery of a POST in flight is then unknown`);
        process.exit(128 + constants.signals[signal]);
      }
    });
  }
  return controller.signal;
}
