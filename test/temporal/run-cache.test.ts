import { expect, it } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { RunCache } from '../../src/temporal/run-cache';

const MIB = 1_024 * 1_024;

it('reads a value once until other values need its space, and reads a value again if it could not be read', async () => {
  const cache = new RunCache<string>();
  const reads: string[] = [];
  const client = Object.create(null) as Client;
  const get = (run: string, read = Promise.resolve(run)) =>
    cache.get(client, run, run === 'a' ? 30 * MIB : 20 * MIB, () => (reads.push(run), read));
  for (const run of ['a', 'b', 'a', 'c', 'a', 'b']) await get(run);
  expect(reads).toEqual(['a', 'b', 'c', 'b']);
  await expect(get('d', Promise.reject(new Error('away')))).rejects.toThrow('away');
  expect(await get('d')).toBe('d');
  // A value that alone exceeds the maximum is kept too.
  for (let times = 0; times < 2; times += 1)
    await cache.get(client, 'large', 100 * MIB, () => (reads.push('large'), Promise.resolve('large')));
  expect(reads.filter((run) => run === 'large')).toHaveLength(1);
});
