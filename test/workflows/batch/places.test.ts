import { describe, expect, it } from '@jest/globals';
import { seededRandom } from '../../../sandbox/random';
import { allot, type PlacesOfPage, reserved } from '../../../src/workflows/batch/state';

function page(
  wants: number,
  allotted: number,
  places = allotted,
  open = Math.min(wants, allotted),
): PlacesOfPage {
  return { allotted, report: { wants, places, open } };
}

function waiting(number: number, wants: number): [number, PlacesOfPage] {
  return [number, page(wants, 0)];
}

const any = () => true;

/** The places that pages get, by their numbers. */
function given(...args: Parameters<typeof allot>) {
  return Object.fromEntries(allot(...args));
}

describe('the places of a batch', () => {
  it('go to the pages in order, to each no more than it has jobs', () => {
    const three = [waiting(1, 20), waiting(2, 20), waiting(3, 20)];
    expect(given(50, three, any)).toEqual({ 1: 20, 2: 20, 3: 10 });
  });

  it('go to a page that has begun before the next one begins', () => {
    expect(given(10, [[1, page(20, 4)], waiting(2, 5)], any)).toEqual({ 1: 10 });
  });

  it('that a page can’t use any more go to the next one without a word to it', () => {
    expect(given(10, [[1, page(3, 10)], waiting(2, 20)], any)).toEqual({ 2: 7 });
  });

  it('are neither given twice nor taken back again while a page has not heard that it has fewer', () => {
    const shrunk = page(20, 2, 10, 10);
    expect(reserved(shrunk)).toBe(10);
    expect(given(10, [[1, shrunk], waiting(2, 5)], any)).toEqual({});
    expect(given(2, [[1, shrunk]], any)).toEqual({});
  });

  it('are taken back from the page that began last', () => {
    const open = [[1, page(20, 6)] as const, [2, page(20, 6)] as const];
    expect([...allot(8, open, any)]).toEqual([[2, 2]]);
    expect([...allot(0, open, any).keys()]).toEqual([2, 1]);
  });

  it('are not for a page whose job has earlier items in another one', () => {
    const chain = [waiting(1, 1), waiting(2, 1), waiting(3, 4)];
    expect(given(10, chain, (page) => page !== 2)).toEqual({ 1: 1, 3: 4 });
  });

  it('are never more than the concurrency, whatever comes', () => {
    const random = seededRandom(7);
    interface Open {
      allotted: number;
      report: { wants: number; places: number; open: number };
    }
    const open = new Map<number, Open>();
    const taken = () => [...open.values()].reduce((sum, each) => sum + reserved(each), 0);
    let next = 1;
    for (let step = 0; step < 2_000; step += 1) {
      const concurrency = Math.floor(random() * 30);
      const queue = [0, 1, 2].map((offset) => waiting(next + offset, 1 + Math.floor(random() * 20)));
      const before = taken();
      const pages = [...open, ...queue.filter(([number]) => !open.has(number))];
      for (const [number, places] of allot(concurrency, pages, any)) {
        const there = open.get(number);
        if (there !== undefined) there.allotted = places;
        else {
          const wants = queue.find(([each]) => each === number)?.[1].report.wants ?? 0;
          open.set(number, { allotted: places, report: { wants, places: 0, open: 0 } });
          next = Math.max(next, number + 1);
        }
      }
      expect(taken()).toBeLessThanOrEqual(Math.max(before, concurrency));
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
