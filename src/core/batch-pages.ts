import { type BatchItem, MAX_PAGE_BYTES, MAX_PAGE_ITEMS } from './batch';
import type { BatchPage, BegunPages, PageInput, PageRanges } from './batch-workflows';
import { pageWorkflowId } from './ids';
import { jsonBytes } from './json';

/** Bytes of a page's JSON beside its items: `{"number":100000,"after":99999,"followedBy":false,"items":[]}` and room. */
const FRAME_BYTES = 100;

/**
 * Cuts a batch into pages of at most `MAX_PAGE_ITEMS` items and `MAX_PAGE_BYTES` bytes as JSON. All items of a job are in
 * one page. If they don't fit, they make a chain of pages of their own, numbered one after the other.
 *
 * An item that is larger than a page gets a page of its own. The largest possible item, a prompt of 256 KiB whose every
 * byte is escaped with six (`\u0001`), takes 1.5 MiB, and a payload may have 2 MiB.
 *
 * Pages are made on demand and hold the given items, so that a large batch needs no second copy. The same items in the
 * same order always make the same pages.
 */
export function* cutPages(items: readonly BatchItem[]): Generator<BatchPage, void, undefined> {
  let number = 0;
  let open: Fill = emptyFill();
  for (const lane of lanesInTurns(items)) {
    const parts = cutLane(lane);
    const [whole] = parts;
    if (whole === undefined || parts.length > 1) {
      for (const [index, part] of parts.entries()) {
        number += 1;
        const after = index === 0 ? null : number - 1;
        yield { number, after, followedBy: index < parts.length - 1, items: part.items };
      }
      continue;
    }
    if (!fits(open, whole.items.length, whole.bytes)) {
      number += 1;
      yield { number, after: null, followedBy: false, items: inRounds(open.lanes) };
      open = emptyFill();
    }
    open.lanes.push(whole.items);
    open.items += whole.items.length;
    open.bytes += whole.bytes;
  }
  if (open.items > 0) {
    yield { number: number + 1, after: null, followedBy: false, items: inRounds(open.lanes) };
  }
}

/** A page in the making. */
interface Fill {
  readonly lanes: Lane[];
  items: number;
  bytes: number;
}

function emptyFill(): Fill {
  return { lanes: [], items: 0, bytes: FRAME_BYTES };
}

/** Whether items of this number and size fit. The first always fit, because they can't be made smaller. */
function fits(
  page: { readonly items: number; readonly bytes: number },
  items: number,
  bytes: number,
): boolean {
  if (page.items === 0) return true;
  return page.items + items <= MAX_PAGE_ITEMS && page.bytes + bytes <= MAX_PAGE_BYTES;
}

interface LanePart {
  readonly items: BatchItem[];
  bytes: number;
}

/** A lane cut to fit into pages: one part, or several that each fill a page. */
function cutLane(lane: Lane): LanePart[] {
  const parts: LanePart[] = [];
  for (const item of lane) {
    // With the comma behind it.
    const bytes = jsonBytes(item) + 1;
    const last = parts.at(-1);
    if (last !== undefined && fits({ items: last.items.length, bytes: FRAME_BYTES + last.bytes }, 1, bytes)) {
      last.items.push(item);
      last.bytes += bytes;
    } else {
      parts.push({ items: [item], bytes });
    }
  }
  return parts;
}

/** The items of one job, in the order of the input: they run one after the other. */
type Lane = readonly BatchItem[];

/**
 * The lanes of a batch, the projects taking turns: the first lane of each project, then the second of each, and so on,
 * projects and lanes in the order of the input. A lane has one open follow-up at a time, so one turn for each lane is a
 * fair share of the places, however long the lanes are.
 */
function* lanesInTurns(items: readonly BatchItem[]): Generator<Lane> {
  let waiting = lanesByProject(items).map((lanes) => lanes.values());
  while (waiting.length > 0) {
    const left: typeof waiting = [];
    for (const lanes of waiting) {
      const next = lanes.next();
      if (next.done === true) continue;
      yield next.value;
      left.push(lanes);
    }
    waiting = left;
  }
}

function lanesByProject(items: readonly BatchItem[]): Lane[][] {
  const projects = new Map<string, Map<string, BatchItem[]>>();
  for (const item of items) {
    const { projectId, jobId } = item.request;
    const jobs = projects.get(projectId) ?? new Map<string, BatchItem[]>();
    projects.set(projectId, jobs);
    const lane = jobs.get(jobId);
    if (lane === undefined) jobs.set(jobId, [item]);
    else lane.push(item);
  }
  return [...projects.values()].map((jobs) => [...jobs.values()]);
}

/** The items of some lanes in rounds: the first of each lane, then the second of each, … */
function inRounds(lanes: readonly Lane[]): BatchItem[] {
  const rounds = Math.max(0, ...lanes.map((lane) => lane.length));
  return Array.from({ length: rounds }, (_, round) => lanes.flatMap((lane) => lane[round] ?? [])).flat();
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
