import { jest } from '@jest/globals';

/**
 * A follow-up on a real server takes 1 to 3 s in a test; ten times that is for a machine that is busy with others.
 * Jest knows one limit for a whole run (measured, jest 30), hence a file that each test file of these projects loads.
 */
jest.setTimeout(30_000);
