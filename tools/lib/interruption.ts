import { once } from 'node:events';

/** The exit code that a shell reports for a program that Ctrl-C has ended. */
export const INTERRUPTED_EXIT_CODE = 130;

/**
 * Waits for Ctrl-C, SIGTERM, or a closed terminal, so that this process can stop its servers and workers in order. The second
 * signal ends this process at once, as it does without a listener.
 */
export function interruption(): { readonly happened: Promise<unknown>; pending(): boolean } {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      controller.abort();
    });
  }
  return { happened: once(controller.signal, 'abort'), pending: () => controller.signal.aborted };
}
