import { afterAll } from '@jest/globals';
import { House, type HouseOptions } from './house';

/** The house of a test file, opened once and closed after its last test. Concurrent tests start before any `beforeAll`. */
export function houseOf(options: HouseOptions = {}): () => Promise<House> {
  let opened: Promise<House> | undefined;
  afterAll(async () => {
    await (await opened)?.close();
  });
  return () => (opened ??= House.open(options));
}
