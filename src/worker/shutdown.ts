import { constants } from 'node:os';
import type { Logger } from '@temporalio/worker';

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
