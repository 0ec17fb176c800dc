import { jest } from '@jest/globals';

/**
 * A follow-up on a real server takes 1 to 3 s in a test, and a batch that looks for one that is there 10 to 20 s.
 * Jest knows one limit for a whole run (measured, jest 30), hence a file that each test file of these projects loads.
 */
jest.setTimeout(60_000);
