import type { Logger } from '@temporalio/worker';
import { BundleError } from './bundle';
import { ConfigurationError } from './configuration-error';
import { HopelessError } from './retry';

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
