import { jest } from '@jest/globals';

/**
 * The one limit that the waits of most tests have: far beyond what a busy machine takes, so that it only ends what hangs.
 * Jest knows one limit for a whole run (measured, jest 30), hence a file that each test file loads.
 */
jest.setTimeout(120_000);
