import { afterAll } from '@jest/globals';
import { TestBatch } from './test-batch';
import { Environment, type EnvironmentOptions } from './environment';

/**
 * Returns functions that open the environment of a test file at their first call. The environment is closed after the last test.
 * A `beforeAll` could not open the environment, because Jest starts concurrent tests before any `beforeAll`.
 */
export function sharedEnvironment(options: EnvironmentOptions = {}) {
  let opened: Promise<Environment> | undefined;
  afterAll(async () => {
    await (await opened)?.close();
  });
  const open = (): Promise<Environment> => (opened ??= Environment.open(options));
  /** Adds a job with faults and starts a follow-up to it. */
  const follow = async (...args: Parameters<Environment['follow']>) => (await open()).follow(...args);
  /** Returns a batch with a number of equal items. */
  const newBatch = async (...items: Parameters<TestBatch['addItems']>) =>
    new TestBatch(await open()).addItems(...items);
  return { open, follow, newBatch };
}
