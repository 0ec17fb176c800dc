import { jest } from '@jest/globals';

/** A worker process needs some 3 s until it polls, a starter 1 s, and a test of processes starts several of them. */
jest.setTimeout(60_000);
