import { describe, expect, it } from '@jest/globals';
import { MAX_PROMPT_BYTES } from '../../../src/core/text';
import { cutPages } from '../../../src/core/batch/pages';
import { checkBatch } from '../../../src/client/batch/items';
import { type BatchItem, MAX_PAGE_BYTES, MAX_PAGE_ITEMS } from '../../../src/core/batch/batch';
import { seededRandom } from '../../../sandbox/random';

function item(projectId: string, jobId: string, prompt = 'x', number = 0): BatchItem {
  return { key: String(number), request: { projectId, jobId, prompt } };
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

const SEEDS = Array.from({ length: 12 }, (_, seed) => seed);

describe('the pages of a batch', () => {
  it.each(SEEDS)(
    'hold every item once, each job in its order, keep to the limits, and name the one that each waits for (seed %i)',
    (seed) => {
      const items = anyBatch(seed);
      const pages = [...cutPages(items)];
      const paged = pages.flatMap((page) => page.items);
      expect(paged).toHaveLength(items.length);
      const keysByLane = (all: readonly BatchItem[]) =>
        new Map([...groupBy(all, laneOf)].map(([lane, inLane]) => [lane, inLane.map(({ key }) => key)]));
      expect(keysByLane(paged)).toEqual(keysByLane(items));
      const lastPageOf = new Map<string, number>();
      for (const [index, page] of pages.entries()) {
        const bytes = Buffer.byteLength(JSON.stringify(page));
        const fits = page.items.length === 1 || bytes <= MAX_PAGE_BYTES;
        const earlier = new Set(page.items.map((one) => lastPageOf.get(laneOf(one)) ?? null));
        expect({ number: page.number, earlier: [...earlier], fits }).toEqual({
          ...{ number: index + 1, earlier: [page.after], fits: true },
        });
        expect(page.items.length).toBeLessThanOrEqual(MAX_PAGE_ITEMS);
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

  it('begin with the first item of every job, not with all of one', () => {
    const items = ['p/a/1', 'p/a/2', 'p/a/3', 'p/b/4', 'q/c/5'].map((each) => {
      const [project = '', job = '', prompt] = each.split('/');
      return item(project, job, prompt);
    });
    const [page] = cutPages(items);
    expect(page?.items.map(({ request }) => request.prompt)).toEqual(['1', '5', '4', '2', '3']);
  });
});

it('the largest item there can be is a page by itself, and below the 2 MiB of a payload', async () => {
  // 256 KiB of a character whose JSON is six bytes for one; ids as long as a workflow id lets them be.
  const [projectId, jobId] = ['p'.repeat(100), 'j'.repeat(100)];
  const { items } = await checkBatch([{ projectId, jobId, prompt: '\u0001'.repeat(MAX_PROMPT_BYTES) }]);
  const pages = [...cutPages([item('p', 'a'), ...items, item('p', 'b')])];
  const sizes = pages.map((page) => Buffer.byteLength(JSON.stringify(page)));
  expect(pages.map((page) => page.items.length)).toEqual([1, 1, 1]);
  expect(sizes[1]).toBeGreaterThan(6 * MAX_PROMPT_BYTES);
  expect(sizes[1]).toBeLessThan(2 * 1_024 * 1_024 - 64 * 1_024);
});
