import { expect, it } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { Kept } from '../../src/temporal/kept';

const MIB = 1_024 * 1_024;

it('what is kept is read once, until others need the room; what could not be read is asked for again', async () => {
  const kept = new Kept<string>();
  const reads: string[] = [];
  const client = Object.create(null) as Client;
  const ask = (run: string, read = Promise.resolve(run)) =>
    kept.get(client, run, run === 'a' ? 30 * MIB : 20 * MIB, () => (reads.push(run), read));
  for (const run of ['a', 'b', 'a', 'c', 'a', 'b']) await ask(run);
  expect(reads).toEqual(['a', 'b', 'c', 'b']);
  await expect(ask('d', Promise.reject(new Error('away')))).rejects.toThrow('away');
  expect(await ask('d')).toBe('d');
});
