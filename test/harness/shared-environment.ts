import { afterAll } from '@jest/globals';
import { Environment, type EnvironmentOptions } from './environment';

/** The environment of a test file, opened once and closed after its last test. Concurrent tests start before any `beforeAll`. */
export function sharedEnvironment(options: EnvironmentOptions = {}): () => Promise<Environment> {
  let opened: Promise<Environment> | undefined;
  afterAll(async () => {
    await (await opened)?.close();
  });
  return () => (opened ??= Environment.open(options));
}
