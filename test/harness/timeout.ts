import { afterAll, jest } from '@jest/globals';
import { endPendingWaits } from '../../tools/lib/eventually';

/**
 * The timeout of every test of `npm test`, and the only limit of its waits. Most tests take seconds, but a busy machine may need ten times as
 * long. Every project loads this file, because Jest 30 ignores a `testTimeout` in a project's configuration.
 */
jest.setTimeout(120_000);

/**
 * Reports the conditions that a test was still waiting for, and ends the waits. Jest itself reports only that the test took too
 * long.
 */
afterAll(() => {
  const waits = endPendingWaits();
  if (waits.length > 0) console.error(`A test ended before these conditions were true:\n${waits.join('\n')}`);
});
