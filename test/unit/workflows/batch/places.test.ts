import { describe, expect, it } from '@jest/globals';
import { allot, type OpenPage, reserved, type WaitingPage } from '../../../../src/workflows/batch/allotment';

function page(
  wants: number,
  allotted: number,
  places = allotted,
  open = Math.min(wants, allotted),
): OpenPage {
  return { allotted, report: { wants, places, open } };
}

function waiting(number: number, wants: number): WaitingPage {
  return { page: number, wants };
}

const any = () => true;

describe('the places of a batch', () => {
  it('go to the pages in order, to each no more than it has jobs', () => {
    const changes = allot(50, new Map(), [waiting(1, 20), waiting(2, 20), waiting(3, 20)], any);
    expect([...changes]).toEqual([
      [1, 20],
      [2, 20],
      [3, 10],
    ]);
  });

  it('go to a page that has begun before the next one begins', () => {
    expect([...allot(10, new Map([[1, page(20, 4)]]), [waiting(2, 5)], any)]).toEqual([[1, 10]]);
  });

  it('that a page can’t use any more go to the next one without a word to it', () => {
    expect([...allot(10, new Map([[1, page(3, 10)]]), [waiting(2, 20)], any)]).toEqual([[2, 7]]);
  });

  it('are not given twice while a page has not heard that it has fewer', () => {
    const shrunk = page(20, 2, 10, 10);
    expect(reserved(shrunk)).toBe(10);
    expect([...allot(10, new Map([[1, shrunk]]), [waiting(2, 5)], any)]).toEqual([]);
  });

  it('are taken back from the page that began last', () => {
    const open = new Map([
      [1, page(20, 6)],
      [2, page(20, 6)],
    ]);
    expect([...allot(8, open, [], any)]).toEqual([[2, 2]]);
    expect([...allot(0, open, [], any)]).toEqual([
      [2, 0],
      [1, 0],
    ]);
  });

  it('are not taken back again from a page whose follow-ups still run', () => {
    expect([...allot(2, new Map([[1, page(20, 2, 10, 10)]]), [], any)]).toEqual([]);
  });

  it('are not for a page whose job has earlier items in another one', () => {
    const chain = [waiting(1, 1), waiting(2, 1), waiting(3, 4)];
    expect([...allot(10, new Map(), chain, (page) => page !== 2)]).toEqual([
      [1, 1],
      [3, 4],
    ]);
    expect([...allot(10, new Map([[2, page(3, 0)]]), [], (number) => number !== 2)]).toEqual([]);
  });

  it('are never more than the concurrency, whatever comes', () => {
    // A small generator of its own (mulberry32), so that a failure can be repeated.
    let seed = 7;
    const random = () => {
      seed = (seed + 0x6d2b79f5) | 0;
      let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
    const open = new Map<
      number,
      { allotted: number; report: { wants: number; places: number; open: number } }
    >();
    let next = 1;
    for (let step = 0; step < 2_000; step += 1) {
      const concurrency = Math.floor(random() * 30);
      const queue = [0, 1, 2].map((offset) => waiting(next + offset, 1 + Math.floor(random() * 20)));
      const before = [...open.values()].reduce((sum, each) => sum + reserved(each), 0);
      for (const [number, places] of allot(concurrency, open, queue, any)) {
        const there = open.get(number);
        if (there !== undefined) there.allotted = places;
        else {
          const wants = queue.find((each) => each.page === number)?.wants ?? 0;
          open.set(number, { allotted: places, report: { wants, places: 0, open: 0 } });
          next = Math.max(next, number + 1);
        }
      }
      const after = [...open.values()].reduce((sum, each) => sum + reserved(each), 0);
      expect(after).toBeLessThanOrEqual(Math.max(before, concurrency));
      // One of the pages hears of its places and works.
      for (const [number, each] of open) {
        if (random() < 0.5) continue;
        each.report.places = each.allotted;
        each.report.open = Math.min(each.report.wants, Math.max(each.report.open - 1, each.allotted));
        if (random() < 0.5) each.report.wants -= 1;
        if (each.report.wants <= 0) open.delete(number);
      }
    }
  });
});
