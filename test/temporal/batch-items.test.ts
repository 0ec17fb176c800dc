import { expect, it } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { kept } from '../../src/temporal/batch-items';

const MIB = 1_024 * 1_024;

const client = Object.create(null) as Client;

it('what is kept is read once, until others of its kind need the room', async () => {
  const reads: string[] = [];
  const ask = (kind: 'names' | 'requests', run: string, bytes: number) => {
    const read = () => Promise.resolve(reads.push(`${kind} ${run}`));
    return kept(client, kind, run, read, () => bytes);
  };
  // Messages of a large batch must not push out the names, all of which are walked over at each look.
  await ask('names', 'a', 30 * MIB);
  for (const run of ['a', 'b', 'c']) await ask('requests', run, 60 * MIB);
  for (const kind of ['names', 'requests'] as const) for (const run of ['a', 'c']) await ask(kind, run, MIB);
  expect(reads).toEqual(['names a', 'requests a', 'requests b', 'requests c', 'names c', 'requests a']);
});

it('what could not be read is asked for again', async () => {
  const ask = (read: () => Promise<string>) => kept(client, 'ends', 'a', read, () => 1);
  await expect(ask(() => Promise.reject(new Error('away')))).rejects.toThrow('away');
  expect(await ask(() => Promise.resolve('there'))).toBe('there');
});
