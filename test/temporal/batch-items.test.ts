import { expect, it } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { kept } from '../../src/temporal/batch-items';

const MIB = 1_024 * 1_024;

it('what is kept is read once, until others of its kind need the room', async () => {
  const client = Object.create(null) as Client;
  const reads: string[] = [];
  const ask = (kind: 'names' | 'requests', run: string, bytes: number) =>
    kept(
      client,
      kind,
      run,
      () => {
        reads.push(`${kind} ${run}`);
        return Promise.resolve(run);
      },
      () => bytes,
    );
  // Messages of a large batch must not push out the names, all of which are walked over at each look.
  await ask('names', 'a', 30 * MIB);
  for (const run of ['a', 'b', 'c']) await ask('requests', run, 60 * MIB);
  for (const kind of ['names', 'requests'] as const) for (const run of ['a', 'c']) await ask(kind, run, MIB);
  expect(reads).toEqual(['names a', 'requests a', 'requests b', 'requests c', 'names c', 'requests a']);
});

it('what could not be read is asked for again', async () => {
  const client = Object.create(null) as Client;
  const failing = () => Promise.reject(new Error('away'));
  await expect(kept(client, 'ends', 'a', failing, () => 1)).rejects.toThrow('away');
  const end = await kept(
    client,
    'ends',
    'a',
    () => Promise.resolve('there'),
    () => 1,
  );
  expect(end).toBe('there');
});
