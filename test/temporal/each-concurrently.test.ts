import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { eachConcurrently } from '../../src/temporal/each-concurrently';

async function* oneByOne(items: number): AsyncGenerator<number> {
  for (let item = 0; item < items; item += 1) {
    await turn();
    yield item;
  }
}

describe('eachConcurrently', () => {
  it('does all of what comes one by one, so many at a time and no more', async () => {
    let open = 0;
    let most = 0;
    const done: number[] = [];
    const held: (() => void)[] = [];
    const all = eachConcurrently(
      oneByOne(12),
      async (item) => {
        open += 1;
        most = Math.max(most, open);
        await new Promise<void>((resolve) => held.push(resolve));
        open -= 1;
        done.push(item);
      },
      4,
    );
    while (done.length < 12) {
      await turn();
      // One goes on when as many are under way as may be, the last one first.
      if (held.length === Math.min(4, 12 - done.length)) held.pop()?.();
    }
    await all;
    expect({ open, most, done: done.length }).toEqual({ open: 0, most: 4, done: 12 });
  });

  it('takes no further item after a failure, and awaits those under way', async () => {
    const begun: number[] = [];
    const ended: number[] = [];
    const work = async (item: number): Promise<void> => {
      begun.push(item);
      if (item === 1) throw new Error('one');
      // By then the failure is known.
      for (let turns = 0; turns < 3; turns += 1) await turn();
      ended.push(item);
    };
    await expect(eachConcurrently([1, 2, 3, 4, 5], work, 2)).rejects.toThrow('one');
    expect({ begun, ended }).toEqual({ begun: [1, 2], ended: [2] });
  });
});
