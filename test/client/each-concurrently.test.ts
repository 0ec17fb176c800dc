import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { eachConcurrently } from '../../src/client/each-concurrently';

async function* oneByOne(items: number): AsyncGenerator<number> {
  for (let item = 0; item < items; item += 1) {
    await sleep(1);
    yield item;
  }
}

describe('eachConcurrently', () => {
  it('does all of what comes one by one, so many at a time and no more', async () => {
    let open = 0;
    let most = 0;
    const done: number[] = [];
    await eachConcurrently(oneByOne(12), 4, async (item) => {
      open += 1;
      most = Math.max(most, open);
      await sleep(5 * (item % 5));
      open -= 1;
      done.push(item);
    });
    expect({ open, most, done: done.length }).toEqual({ open: 0, most: 4, done: 12 });
  });

  it('takes no further item after a failure, and awaits those under way', async () => {
    const begun: number[] = [];
    const ended: number[] = [];
    const work = async (item: number): Promise<void> => {
      begun.push(item);
      await sleep(item === 1 ? 1 : 20);
      if (item === 1) throw new Error('one');
      ended.push(item);
    };
    await expect(eachConcurrently([1, 2, 3, 4, 5], 2, work)).rejects.toThrow('one');
    expect({ begun, ended }).toEqual({ begun: [1, 2], ended: [2] });
  });
});
