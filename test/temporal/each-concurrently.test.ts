import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { eachConcurrently } from '../../src/temporal/each-concurrently';

/** Yields the numbers of the items, each one in a later turn of the event loop. */
async function* asyncItems(items: number): AsyncGenerator<number> {
  for (let item = 0; item < items; item += 1) {
    await turn();
    yield item;
  }
}

/**
 * Processes a number of items, and returns the started and ended items, the highest number of concurrent items, and the error.
 */
async function processItems(items: number, concurrency: number, failingItem?: number) {
  const [started, ended]: [number[], number[]] = [[], []];
  let maxConcurrent = 0;
  const work = async (item: number): Promise<void> => {
    started.push(item);
    maxConcurrent = Math.max(maxConcurrent, started.length - ended.length);
    if (item === failingItem) throw new Error('it fails');
    for (let turns = 0; turns < 20; turns += 1) await turn();
    ended.push(item);
  };
  const error = await eachConcurrently(asyncItems(items), work, concurrency).catch(String);
  return { started: started.length, ended, maxConcurrent, error };
}

it('processes every item of an async iterable, and at most N items at a time', async () => {
  const expected = { started: 5, ended: [0, 1, 2, 3, 4], maxConcurrent: 2, error: undefined };
  expect(await processItems(5, 2)).toEqual(expected);
});

it('starts no further item after a failure, and waits for the items in progress', async () => {
  expect(await processItems(5, 2, 0)).toMatchObject({ started: 2, ended: [1], error: 'Error: it fails' });
});
