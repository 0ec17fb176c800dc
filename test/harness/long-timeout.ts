import { jest } from '@jest/globals';

/**
 * The timeout of every `long`, `fault` and `e2e` test except `kubernetes`, and the only limit of its waits. These tests start
 * several programs, or download, compile and install packages. On a new or busy machine, this takes minutes.
 */
jest.setTimeout(900_000);
