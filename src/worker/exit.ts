import { constants } from 'node:os';
import type { Logger } from '@temporalio/worker';
import { BundleError } from './bundle';
import { ConfigurationError } from './config';
import { HopelessError } from './temporal';

/** The exit codes of the worker: 2 means that starting it again without a change is useless. */
export const EXIT = { drained: 0, failed: 1, misconfigured: 2 } as const;

/**
 * Says why the worker could not start or go on, and returns the exit code for it. What a person must put right goes to
 * stderr in plain words; anything else is a failure of the process, and goes to the log with its stack.
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
  else logger.error('the worker ends by an unexpected error', { error });
  return EXIT.failed;
}

/**
 * An error that nobody catches ends the process, as it would anyway; here its text passes the redactor, which Node's
 * own report on stderr would not.
 */
export function endOnBug(logger: Logger): void {
  process.on('uncaughtException', (error) => {
    logger.error('the worker ends by a bug', { error });
    process.exit(EXIT.failed);
  });
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * Signals within this time of the first are the same gesture: a Ctrl-C reaches the worker from the terminal, and again
 * from npm, which hands it on to its child. Nobody decides in less than a second to give a drain up.
 */
const SAME_GESTURE_MS = 1_000;

/**
 * Makes SIGTERM and SIGINT end the process in order: the first asks for it, a later one ends it at once with the exit
 * code that a shell gives for the signal (143, 130).
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
