import { expect, it } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { Kept } from '../../src/temporal/batch-items';

const MIB = 1_024 * 1_024;

it('what is kept is read once, until others need the room', async () => {
  const client = Object.create(null) as Client;
  const kept = new Kept<string>();
  const reads: string[] = [];
  const ask = (run: string, bytes: number) =>
    kept.get(client, run, bytes, () => {
      reads.push(run);
      return Promise.resolve(run);
    });
  await ask('a', 30 * MIB);
  for (const run of ['b', 'a', 'c', 'a', 'b']) await ask(run, 20 * MIB);
  expect(reads).toEqual(['a', 'b', 'c', 'b']);
});

it('what could not be read is asked for again', async () => {
  const client = Object.create(null) as Client;
  const kept = new Kept<string>();
  const failing = () => Promise.reject(new Error('away'));
  await expect(kept.get(client, 'a', 1, failing)).rejects.toThrow('away');
  expect(await kept.get(client, 'a', 1, () => Promise.resolve('there'))).toBe('there');
});
