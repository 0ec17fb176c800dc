import type { Allotment, PageReport } from '../../core/batch-workflows';
import { isRecord } from '../../core/json';

/** A page that knows how many follow-ups it may have open. */
export interface OpenPage {
  readonly allotted: number;
  readonly report: Pick<PageReport, 'wants' | 'places' | 'open'>;
}

/** A page that has not begun. */
export type WaitingPage = Pick<PageReport, 'page' | 'after' | 'wants'>;

/**
 * The places that a page may be using: what it was told last, or what it works by until it has heard of it, but never
 * more than it has jobs with items left.
 */
export function reserved({ allotted, report }: OpenPage): number {
  return Math.min(report.wants, Math.max(allotted, report.places, report.open));
}

/**
 * How many places each page shall have, so that all of them together never have more than `concurrency` open: those that
 * have begun first, then the next ones in order. A page waits for the one that holds earlier items of its job.
 *
 * @param open by page number
 * @param mayBegin whether the page before has ended
 * @returns the pages whose places change, by number
 */
export function allot(
  concurrency: number,
  open: ReadonlyMap<number, OpenPage>,
  waiting: readonly WaitingPage[],
  mayBegin: (page: WaitingPage) => boolean,
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
    if (more <= 0) continue;
    changes.set(number, reserved(page) + more);
    free -= more;
  }
  for (const page of waiting) {
    if (free <= 0) break;
    if (!mayBegin(page)) continue;
    const places = Math.min(free, page.wants);
    changes.set(page.page, places);
    free -= places;
  }
  return changes;
}

/**
 * A page's report as it came over the wire.
 *
 * @param pages how many pages the batch has
 * @returns null where it is none: anybody can send a signal, and nothing that is sent may stall a batch
 */
export function readReport(value: unknown, pages: number): PageReport | null {
  if (!isRecord(value)) return null;
  const { run, pageRun, page, after, followedBy, wants, places, open, counts, failures, done } = value;
  const isReport =
    typeof run === 'string' &&
    typeof pageRun === 'string' &&
    isCount(page) &&
    page >= 1 &&
    page <= pages &&
    (after === null || isCount(after)) &&
    typeof followedBy === 'boolean' &&
    [wants, places, open].every(isCount) &&
    isRecord(counts) &&
    [counts.settled, counts.unknownDeliveries].every(isCount) &&
    [counts.byStatus, counts.byFailure, counts.byEvidence].every(isCounts) &&
    Array.isArray(failures) &&
    failures.every(isFailedItem) &&
    typeof done === 'boolean';
  return isReport ? (value as unknown as PageReport) : null;
}

const MODES: readonly Allotment['mode'][] = ['run', 'drain', 'leave', 'cancel'];

/** A batch's word to its page as it came over the wire; null where it is none. */
export function readAllotment(value: unknown): Allotment | null {
  if (!isRecord(value)) return null;
  const { places, tolerated, mode } = value;
  const isAllotment =
    isCount(places) && (tolerated === null || isCount(tolerated)) && MODES.some((each) => each === mode);
  return isAllotment ? (value as unknown as Allotment) : null;
}

function isCounts(value: unknown): boolean {
  return isRecord(value) && Object.entries(value).every(([name, count]) => isText(name) && isCount(count));
}

function isFailedItem(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { workflowId, outcome, message } = value;
  return isText(workflowId) && isText(outcome) && (message === null || isText(message));
}

/** Half a character in what a batch hands on would end its worker (sdk-core 1.24). */
function isText(value: unknown): boolean {
  return typeof value === 'string' && value.isWellFormed();
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
