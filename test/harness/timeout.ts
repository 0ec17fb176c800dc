import { afterAll, jest } from '@jest/globals';
import { endPendingWaits } from '../../tools/lib/eventually';

/**
 * The one bound of all waits: no wait has one of its own. Most tests take seconds; a machine that is busy with other work
 * may take ten times as long. Jest knows one limit for a whole run (measured, jest 30), hence a file that each test file loads.
 */
jest.setTimeout(120_000);

/** Jest says only that a test took too long; this says what it waited for, and ends the wait. */
afterAll(() => {
  const waits = endPendingWaits();
  if (waits.length > 0) console.error(`a test ended while it waited:\n${waits.join('\n')}`);
});
