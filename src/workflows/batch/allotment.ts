import type { PageReport } from '../../core/batch-workflows';
import { failuresOf } from './counts';

/** A page that knows how many follow-ups it may have open. */
export interface OpenPage {
  readonly allotted: number;
  readonly report: Pick<PageReport, 'wants' | 'places' | 'open'>;
}

/** A page that has not begun. */
export type WaitingPage = Pick<PageReport, 'page' | 'wants'>;

/**
 * The places that a page may be using: what it was told last, or what it works by until it has heard of it, but never
 * more than it has jobs with items left.
 */
export function reserved({ allotted, report }: OpenPage): number {
  return Math.min(report.wants, Math.max(allotted, report.places, report.open));
}

/** How many ends are reported together, unless one of them frees a place: each report costs the batch a workflow task. */
const ENDS_PER_REPORT = 10;

/** Whether the batch has to hear what its page has done since the last report. */
export function isNews(now: PageReport, last: PageReport): boolean {
  return (
    now.open !== last.open ||
    now.counts.settled >= last.counts.settled + ENDS_PER_REPORT ||
    failuresOf(now.counts) > failuresOf(last.counts) ||
    reserved({ allotted: now.places, report: now }) < reserved({ allotted: now.places, report: last }) ||
    now.places < last.places
  );
}

/**
 * How many places each page shall have, so that all of them together never have more than `concurrency` open: those that
 * have begun first, then the next ones in order.
 *
 * @param open by page number
 * @param mayStart whether a page may start items at present
 * @returns the pages whose places change, by number
 */
export function allot(
  concurrency: number,
  open: ReadonlyMap<number, OpenPage>,
  waiting: readonly WaitingPage[],
  mayStart: (page: number) => boolean,
): Map<number, number> {
  const changes = new Map<number, number>();
  // Those that began last give back first, so that the first ones come to their end.
  let excess = -concurrency;
  for (const { allotted, report } of open.values()) excess += Math.min(allotted, report.wants);
  for (const [number, { allotted, report }] of [...open].reverse()) {
    const back = Math.min(excess, Math.min(allotted, report.wants));
    if (back <= 0) continue;
    changes.set(number, Math.min(allotted, report.wants) - back);
    excess -= back;
  }
  if (changes.size > 0) return changes;

  let free = concurrency;
  for (const page of open.values()) free -= reserved(page);
  for (const [number, page] of open) {
    const more = Math.min(free, page.report.wants - reserved(page));
    if (more <= 0 || !mayStart(number)) continue;
    changes.set(number, reserved(page) + more);
    free -= more;
  }
  for (const page of waiting) {
    if (free <= 0) break;
    if (!mayStart(page.page)) continue;
    const places = Math.min(free, page.wants);
    changes.set(page.page, places);
    free -= places;
  }
  return changes;
}
