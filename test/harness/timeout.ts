import { jest } from '@jest/globals';

/**
 * A follow-up on a real server takes 1 to 3 s in a test, a batch that looks for one that is there 10 to 20 s, and the start
 * of each process 1 to 3 s. Jest knows one limit for a whole run (measured, jest 30), hence a file that each test file loads.
 */
jest.setTimeout(60_000);
