import { afterAll } from '@jest/globals';
import { TestBatch } from './test-batch';
import { Environment, type EnvironmentOptions } from './environment';

/** The environment of a test file, opened once and closed after its last test. Concurrent tests start before any `beforeAll`. */
export function sharedEnvironment(options: EnvironmentOptions = {}) {
  let opened: Promise<Environment> | undefined;
  afterAll(async () => {
    await (await opened)?.close();
  });
  const open = (): Promise<Environment> => (opened ??= Environment.open(options));
  /** Adds a job with faults and starts a follow-up to it. */
  const follow = async (...args: Parameters<Environment['follow']>) => (await open()).follow(...args);
  /** A batch of so many items that are alike. */
  const newBatch = async (...items: Parameters<TestBatch['addItems']>) =>
    new TestBatch(await open()).addItems(...items);
  return { open, follow, newBatch };
}
