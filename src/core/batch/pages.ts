import { type BatchItem, MAX_PAGE_BYTES, MAX_PAGE_ITEMS } from './batch';
import type { BatchPage, BegunPages, PageInput, PageRanges } from './workflows';
import { pageWorkflowId } from '../ids';
import { jsonBytes } from '../text';

/** Bytes of a page's JSON beside its items: `{"number":100000,"after":99999,"items":[]}` and room. */
const FRAME_BYTES = 100;

/**
 * Cuts a batch into pages of at most `MAX_PAGE_ITEMS` items and `MAX_PAGE_BYTES` bytes as JSON; the same items in the same
 * order always make the same pages. All items of a job are in one page, or in a chain of pages of their own, numbered one
 * after the other. Pages are made on demand, so that a large batch needs no second copy.
 *
 * An item larger than a page gets one to itself. The largest, 256 KiB whose every byte is escaped with six (`\u0001`), takes
 * 1.5 MiB, and a payload may have 2 MiB.
 */
export function* cutPages(items: readonly BatchItem[]): Generator<BatchPage, void, undefined> {
  let number = 0;
  const next = (after: number | null, lanes: readonly Lane[]): BatchPage => {
    number += 1;
    return { number, after, items: [...inTurns(lanes.map((lane) => lane.items))] };
  };
  let open: Lane[] = [];
  for (const lane of lanesInTurns(items)) {
    const parts = cutLane(lane);
    if (parts.length > 1) {
      for (const [index, part] of parts.entries()) yield next(index === 0 ? null : number, [part]);
      continue;
    }
    if (!fit([...open, ...parts])) {
      yield next(null, open);
      open = [];
    }
    open.push(...parts);
  }
  if (open.length > 0) yield next(null, open);
}

/** The items of one job, in the order of the input, or a part of them: they run one after the other. */
interface Lane {
  readonly items: readonly BatchItem[];
  /** As JSON, with a comma behind each item. */
  readonly bytes: number;
}

/** Whether lanes make one page. A single item always does, because it can't be made smaller. */
function fit(lanes: readonly Lane[]): boolean {
  const items = lanes.reduce((sum, lane) => sum + lane.items.length, 0);
  const bytes = lanes.reduce((sum, lane) => sum + lane.bytes, FRAME_BYTES);
  return items <= 1 || (items <= MAX_PAGE_ITEMS && bytes <= MAX_PAGE_BYTES);
}

/** A lane cut to fit into pages: one part, or several that each fill a page. */
function cutLane(items: readonly BatchItem[]): Lane[] {
  const parts: Lane[] = [];
  for (const item of items) {
    const bytes = jsonBytes(item) + 1;
    const last = parts.at(-1);
    if (last !== undefined && fit([last, { items: [item], bytes }]))
      parts.splice(-1, 1, { items: [...last.items, item], bytes: last.bytes + bytes });
    else parts.push({ items: [item], bytes });
  }
  return parts;
}

/** The lanes of a batch, the projects taking turns. A lane has one open follow-up at a time, so each gets a fair share. */
function lanesInTurns(items: readonly BatchItem[]): Iterable<BatchItem[]> {
  const projects = groupsBy(items, ({ request }) => request.projectId);
  return inTurns(projects.map((project) => groupsBy(project, ({ request }) => request.jobId)));
}

function groupsBy(items: readonly BatchItem[], keyOf: (item: BatchItem) => string): BatchItem[][] {
  const groups = new Map<string, BatchItem[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return [...groups.values()];
}

/** The first of each list, then the second of each, … */
function* inTurns<T>(lists: readonly (readonly T[])[]): Generator<T, void, undefined> {
  let left = lists;
  for (let turn = 0; left.length > 0; turn += 1) {
    left = left.filter((list) => turn < list.length);
    for (const list of left) yield* list.slice(turn, turn + 1);
  }
}

/** What a page is started with: its items, and the page of the latest run of the batch that had begun it. */
export function pageInput(
  batch: Pick<PageInput, 'batchWorkflowId' | 'batchId' | 'run' | 'again'>,
  page: BatchPage,
  earlierRuns: readonly BegunPages[],
): PageInput {
  const run = earlierRuns.findLast(({ pages }) => hasPage(pages, page.number))?.run;
  const earlier = run === undefined ? null : pageWorkflowId(batch.batchId, run, page.number);
  return { ...batch, page, earlier };
}

export function hasPage(ranges: PageRanges, page: number): boolean {
  return ranges.some(([from, to]) => from <= page && page <= to);
}

export function countPages(ranges: PageRanges): number {
  return ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
}

/** The ranges with further pages, in rising order. */
export function withPages(ranges: PageRanges, pages: readonly number[]): PageRanges {
  const joined: [number, number][] = [];
  const single = pages.map((page) => [page, page] as const);
  for (const [from, to] of [...ranges, ...single].sort(([a], [b]) => a - b)) {
    const last = joined.at(-1);
    if (last === undefined || from > last[1] + 1) joined.push([from, to]);
    else last[1] = Math.max(last[1], to);
  }
  return joined;
}

export function* pagesIn(ranges: PageRanges): Generator<number, void, undefined> {
  for (const [from, to] of ranges) for (let page = from; page <= to; page += 1) yield page;
}
