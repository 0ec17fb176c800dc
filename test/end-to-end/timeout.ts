import { jest } from '@jest/globals';

/**
 * The timeout of every end-to-end test except `kubernetes`, and the only limit of its waits. These tests download, compile and install packages. On a new or
 * busy machine, this takes minutes.
 */
jest.setTimeout(900_000);
