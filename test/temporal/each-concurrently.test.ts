import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { eachConcurrently } from '../../src/temporal/each-concurrently';

async function* oneByOne(items: number): AsyncGenerator<number> {
  for (let item = 0; item < items; item += 1) {
    await turn();
    yield item;
  }
}

/** Does the work of so many items: what has begun and ended, and how many were open at most. */
async function done(items: number, atATime: number, fails?: number) {
  const [begun, ended]: [number[], number[]] = [[], []];
  let most = 0;
  const work = async (item: number): Promise<void> => {
    begun.push(item);
    most = Math.max(most, begun.length - ended.length);
    if (item === fails) throw new Error('it fails');
    for (let turns = 0; turns < 20; turns += 1) await turn();
    ended.push(item);
  };
  const end = await eachConcurrently(oneByOne(items), work, atATime).catch((error: unknown) => String(error));
  return { begun: begun.length, ended, most, end };
}

it('all of what comes one by one is done, so many at a time and no more', async () => {
  expect(await done(5, 2)).toEqual({ begun: 5, ended: [0, 1, 2, 3, 4], most: 2, end: undefined });
});

it('no further item is taken after a failure, and those under way are awaited', async () => {
  expect(await done(5, 2, 0)).toMatchObject({ begun: 2, ended: [1], end: 'Error: it fails' });
});
