import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { eachConcurrently } from '../../src/temporal/each-concurrently';

async function turns(count: number): Promise<void> {
  for (let made = 0; made < count; made += 1) await turn();
}

async function* oneByOne(items: number): AsyncGenerator<number> {
  for (let item = 0; item < items; item += 1) {
    await turn();
    yield item;
  }
}

it('all of what comes one by one is done, so many at a time and no more', async () => {
  let [open, most, done] = [0, 0, 0];
  const work = async () => {
    open += 1;
    most = Math.max(most, open);
    await turns(20);
    open -= 1;
    done += 1;
  };
  await eachConcurrently(oneByOne(12), work, 4);
  expect({ most, done }).toEqual({ most: 4, done: 12 });
});

it('no further item is taken after a failure, and those under way are awaited', async () => {
  const begun: number[] = [];
  const ended: number[] = [];
  const work = async (item: number): Promise<void> => {
    begun.push(item);
    if (item === 1) throw new Error('one');
    // By then the failure is known.
    await turns(3);
    ended.push(item);
  };
  await expect(eachConcurrently([1, 2, 3, 4, 5], work, 2)).rejects.toThrow('one');
  expect({ begun, ended }).toEqual({ begun: [1, 2], ended: [2] });
});
