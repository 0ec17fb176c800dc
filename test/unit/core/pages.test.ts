import { describe, expect, it } from '@jest/globals';
import { MAX_PROMPT_BYTES } from '../../../src/core/text';
import { jsonBytes } from '../../../src/core/json';
import { cutPages } from '../../../src/core/batch-pages';
import type { BatchPage } from '../../../src/core/batch-workflows';
import { batchOfRequests } from '../../../src/client/batch/items';
import { type BatchItem, MAX_PAGE_BYTES, MAX_PAGE_ITEMS } from '../../../src/core/batch';
import { seededRandom } from './seeded-random';

function item(projectId: string, jobId: string, prompt = 'x', number = 0): BatchItem {
  return { key: String(number), request: { projectId, jobId, prompt }, promptDigest: 'd'.repeat(64) };
}

const laneOf = ({ request }: BatchItem): string => `${request.projectId}/${request.jobId}`;

function groupBy<T>(all: readonly T[], nameOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) groups.set(nameOf(one), [...(groups.get(nameOf(one)) ?? []), one]);
  return groups;
}

/** A batch of any shape: many jobs or few, prompts short and long, of characters of one to four bytes. */
function anyBatch(seed: number): BatchItem[] {
  const random = seededRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const projects = 1 + below(8);
  const jobs = 1 + below([3, 40, 400][below(3)] ?? 1);
  const longest = [10, 3_000, 60_000][below(3)] ?? 1;
  return Array.from({ length: below(1_500) }, (_, number) => {
    const prompt = ['x', 'é', '日', '🙂', '\u0001', '"'][below(6)]?.repeat(1 + below(longest / 6)) ?? '';
    // Squared, so that some projects and jobs have far more items than others.
    return item(`p${below(projects * random())}`, `j${below(jobs * random())}`, prompt, number);
  });
}

const SEEDS = Array.from({ length: 30 }, (_, seed) => seed);

describe('the pages of a batch', () => {
  it.each(SEEDS)('hold every item once, each job in the order of the input (seed %i)', (seed) => {
    const items = anyBatch(seed);
    const paged = [...cutPages(items)].flatMap((page) => page.items);
    expect(new Set(paged).size).toBe(items.length);
    expect(paged).toHaveLength(items.length);
    const byLane = (all: readonly BatchItem[]): unknown =>
      [...groupBy(all, laneOf)]
        .map(([lane, inLane]): [string, unknown] => [lane, inLane.map(({ key }) => key)])
        .sort(([one], [other]) => (one < other ? -1 : 1));
    expect(byLane(paged)).toEqual(byLane(items));
  });

  it.each(SEEDS)('keep to the limits, but for an item that is larger by itself (seed %i)', (seed) => {
    for (const page of cutPages(anyBatch(seed))) {
      expect(page.items.length).toBeGreaterThan(0);
      expect(page.items.length).toBeLessThanOrEqual(MAX_PAGE_ITEMS);
      const bytes = Buffer.byteLength(JSON.stringify(page));
      // eslint-disable-next-line jest/no-conditional-expect -- which of the two holds is what the name says
      if (page.items.length > 1) expect(bytes).toBeLessThanOrEqual(MAX_PAGE_BYTES);
    }
  });

  it.each(SEEDS)(
    'name the one that each waits for, so that a job never runs twice at a time (seed %i)',
    (seed) => {
      const pages = [...cutPages(anyBatch(seed))];
      const lastPageOf = new Map<string, number>();
      expect(pages.map(({ number }) => number)).toEqual(pages.map((_, index) => index + 1));
      for (const page of pages) {
        const earlier = new Set(page.items.map((one) => lastPageOf.get(laneOf(one)) ?? null));
        expect([...earlier]).toEqual([page.after]);
        expect(page.followedBy).toBe(pages[page.number]?.after === page.number);
        for (const one of page.items) lastPageOf.set(laneOf(one), page.number);
      }
    },
  );

  it.each(SEEDS)(
    'let the projects take turns: none begins a job more than another that waits (seed %i)',
    (seed) => {
      const random = seededRandom(seed);
      // Jobs of up to three items, in a file that is sorted by project.
      const items = Array.from({ length: 2_000 }, (_, number) =>
        item(`p${Math.floor(number / (100 + seed * 20))}`, `j${Math.floor(number / (1 + 2 * random()))}`),
      );
      const jobs = [...groupBy(items, ({ request }) => request.projectId)].map(
        ([project, own]): [string, number] => [project, new Set(own.map(laneOf)).size],
      );
      const begun = new Map<string, number>();
      const lanes = [...new Set([...cutPages(items)].flatMap((page) => page.items.map(laneOf)))];
      for (const lane of lanes) {
        const project = lane.split('/')[0] ?? '';
        begun.set(project, (begun.get(project) ?? 0) + 1);
        const waiting = jobs.filter(([other, all]) => (begun.get(other) ?? 0) < all);
        const fewest = Math.min(...waiting.map(([other]) => begun.get(other) ?? 0));
        expect(begun.get(project)).toBeLessThanOrEqual(fewest + 1);
      }
      expect(lanes).toHaveLength(new Set(items.map(laneOf)).size);
    },
  );

  it('are the same for the same items', () => {
    const items = anyBatch(7);
    expect([...cutPages(items)]).toEqual([...cutPages(items)]);
  });

  it('are made as they are asked for, of the very items', () => {
    const items = Array.from({ length: 1_000 }, (_, number) => item('p', `j${number}`));
    const first = cutPages(items).next().value as BatchPage;
    expect(first.items).toHaveLength(MAX_PAGE_ITEMS);
    expect(first.items[3]).toBe(items[3]);
  });

  it('are a chain of their own where a job has more items than a page', () => {
    const long = Array.from({ length: 110 }, (_, number) => item('p', 'long', 'x', number));
    const pages = [...cutPages([item('p', 'first'), ...long, item('p', 'last')])];
    expect(
      pages.map(({ number, after, followedBy, items }) => [number, after, followedBy, items.length]),
    ).toEqual([
      [1, null, true, 50],
      [2, 1, true, 50],
      [3, 2, false, 10],
      [4, null, false, 2],
    ]);
  });

  it('begin with the first item of every job, not with all of one', () => {
    const items = [
      item('p', 'a', '1'),
      item('p', 'a', '2'),
      item('p', 'a', '3'),
      item('p', 'b', '4'),
      item('q', 'c', '5'),
    ];
    const [page] = cutPages(items);
    expect(page?.items.map(({ request }) => request.prompt)).toEqual(['1', '5', '4', '2', '3']);
  });

  it('are none for no items', () => {
    expect([...cutPages([])]).toEqual([]);
  });
});

describe('the largest item there can be', () => {
  /** 256 KiB of a character whose JSON is six bytes for one; ids as long as a workflow id lets them be. */
  async function largest(): Promise<BatchItem> {
    const { items } = await batchOfRequests([
      {
        projectId: 'p'.repeat(100),
        jobId: 'j'.repeat(100),
        prompt: '\u0001'.repeat(MAX_PROMPT_BYTES),
        deadline: `${'0'.repeat(7_900)}24h` as '24h',
      },
    ]);
    const [only] = items;
    if (only === undefined) throw new Error('the batch has no item');
    return only;
  }

  it('is a page by itself, and below the 2 MiB of a payload', async () => {
    const pages = [...cutPages([item('p', 'a'), await largest(), item('p', 'b')])];
    const sizes = pages.map((page) => Buffer.byteLength(JSON.stringify(page)));
    expect(pages.map(({ items }) => items.length)).toEqual([1, 1, 1]);
    expect(sizes[1]).toBeGreaterThan(6 * MAX_PROMPT_BYTES);
    expect(sizes[1]).toBeLessThan(2 * 1_024 * 1_024 - 64 * 1_024);
  });
});

describe('jsonBytes', () => {
  it.each(['a', 'é', '日', '🙂', '\u0001"\\\n', '\ud800', '\u2028', ''])(
    'counts the UTF-8 of the JSON of %j',
    (text) => {
      expect(jsonBytes({ text })).toBe(Buffer.byteLength(JSON.stringify({ text })));
    },
  );
});
