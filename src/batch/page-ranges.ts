import type { PageRanges } from '../contract/batch-workflows';

export function hasPage(ranges: PageRanges, page: number): boolean {
  return ranges.some(([from, to]) => from <= page && page <= to);
}

export function countPages(ranges: PageRanges): number {
  return ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
}

/** The pages of both, in rising order. */
export function joinPages(one: PageRanges, other: PageRanges): PageRanges {
  const joined: [number, number][] = [];
  for (const [from, to] of [...one, ...other].sort(([a], [b]) => a - b)) {
    const last = joined.at(-1);
    if (last === undefined || from > last[1] + 1) joined.push([from, to]);
    else last[1] = Math.max(last[1], to);
  }
  return joined;
}

export function rangesOf(pages: readonly number[]): PageRanges {
  return joinPages(
    [],
    pages.map((page) => [page, page] as const),
  );
}

export function* pagesIn(ranges: PageRanges): Generator<number, void, undefined> {
  for (const [from, to] of ranges) for (let page = from; page <= to; page += 1) yield page;
}
