import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { mapConcurrently } from '../../../src/client/map-concurrently';

async function* oneByOne(items: readonly number[]): AsyncGenerator<number> {
  for (const item of items) {
    await sleep(1);
    yield item;
  }
}

describe('eachOf', () => {
  const items = [5, 1, 4, 2, 3];

  it.each([
    ['a list', items],
    ['what comes one by one', oneByOne(items)],
  ])('answers in the order of %s, whoever is done first', async (_, given) => {
    const results = await mapConcurrently(given, 3, async (item) => {
      await sleep(5 * item);
      return item * 10;
    });
    expect(results).toEqual([50, 10, 40, 20, 30]);
  });

  it('does so many at a time, and no more', async () => {
    let open = 0;
    let most = 0;
    await mapConcurrently(Array.from({ length: 12 }, Number), 4, async () => {
      open += 1;
      most = Math.max(most, open);
      await sleep(2);
      open -= 1;
    });
    expect({ open, most }).toEqual({ open: 0, most: 4 });
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
    await expect(mapConcurrently([1, 2, 3, 4, 5], 2, work)).rejects.toThrow('one');
    expect({ begun, ended }).toEqual({ begun: [1, 2], ended: [2] });
  });
});
