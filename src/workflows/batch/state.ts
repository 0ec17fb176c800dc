import { ApplicationFailure } from '@temporalio/workflow';
import type { BatchCounts, BatchSummary, FailedItem, Tolerance, TryAgain } from '../../core/batch/batch';
import { countPages, hasPage, pagesIn, withPages } from '../../core/batch/pages';
import type {
  Allotment,
  BatchFailureType,
  BatchMemo,
  BatchProgress,
  BegunPages,
  PageRanges,
  PageReport,
} from '../../core/batch/workflows';
import { counted } from '../../core/text';
import { addUp, failuresOf, firstFailures, NO_COUNTS } from './counts';

/** Why a batch starts no further item, and what its pages do then. */
const MODES = {
  tolerance: 'drain',
  'lost-page': 'drain',
  'not-handed-over': 'drain',
  cancel: 'leave',
  'cancel-running': 'cancel',
} as const satisfies Record<string, Allotment['mode']>;

/** What a batch keeps of a page that has reported and is not done. */
export interface KnownPage {
  /** It has been allotted places, or an earlier run of the batch had begun it: it may have follow-ups open. */
  begun: boolean;
  allotted: number;
  /** The allotment that was sent last, as JSON. */
  lastSent: string;
  report: Pick<PageReport, 'pageRun' | 'after' | 'wants' | 'places' | 'open' | 'counts'>;
}

/**
 * Everything that a batch knows. It is plain JSON, because a run that continues as new hands it to the next one. Times are
 * milliseconds since the epoch.
 */
export interface BatchState {
  readonly batchId: string;
  readonly run: string;
  readonly startedAt: number;
  readonly items: number;
  readonly pages: number;
  readonly tolerate: Tolerance;
  readonly earlier: readonly BegunPages[];
  readonly again: TryAgain | null;
  /** Its items came with it, so that it has started its pages itself. */
  readonly hasItems: boolean;
  concurrency: number;
  paused: boolean;
  ending: keyof typeof MODES | null;
  /** What the pages that are done add up to. */
  finished: BatchCounts;
  finishedPages: PageRanges;
  failures: readonly FailedItem[];
  readonly known: Record<number, KnownPage>;
  /** The pages that follow the one before them in a chain. */
  chained: PageRanges;
  /** Looks in a row at which nothing went on and no further page had come. */
  quietLooks: number;
}

const NOTHING_YET = {
  ...{ paused: false, ending: null, quietLooks: 0 },
  ...{ finished: NO_COUNTS, finishedPages: [], failures: [], chained: [] },
};

export function initialState(batch: Omit<BatchState, keyof typeof NOTHING_YET | 'known'>): BatchState {
  return { ...batch, ...NOTHING_YET, known: {} };
}

export function knownPages({ known }: BatchState): [number, KnownPage][] {
  return Object.entries(known).map(([number, page]) => [Number(number), page]);
}

export function begunPages(state: BatchState): [number, KnownPage][] {
  return knownPages(state).filter(([, page]) => page.begun);
}

/**
 * Keeps a page's report; a later one replaces an earlier one. A page whose number is done, or in whose place another one has
 * begun, gets no places: that one may have started its items.
 */
export function takeReport(state: BatchState, report: PageReport): void {
  const { page, pageRun, after, wants, places, open, counts } = report;
  if (page < 1 || page > state.pages || hasPage(state.finishedPages, page)) return;
  const before = state.known[page];
  if (before?.begun === true && before.report.pageRun !== pageRun) {
    losePage(state, page);
    return;
  }
  state.failures = firstFailures([state.failures, report.failures]);
  if (after !== null && !hasPage(state.chained, page)) state.chained = withPages(state.chained, [page]);
  if (before === undefined) state.quietLooks = 0;
  if (report.done) {
    finishPage(state, page, counts);
    // Somebody has cancelled it before its items had ended.
    if (wants > 0) state.ending ??= 'lost-page';
    return;
  }
  const known = { pageRun, after, wants, places, open, counts };
  const begun = state.earlier.some(({ pages }) => hasPage(pages, page));
  if (before !== undefined) before.report = known;
  else state.known[page] = { begun, allotted: 0, lastSent: '', report: known };
}

/** Whether every page that an earlier run had begun has reported what it has open. Until then no place is given. */
export function allHaveAnswered(state: BatchState): boolean {
  return state.earlier.every(({ pages }) =>
    [...pagesIn(pages)].every((page) => page in state.known || hasPage(state.finishedPages, page)),
  );
}

/** Somebody has ended a page: what it has sent goes on, and what it hasn't is not sent. */
export function losePage(state: BatchState, page: number): void {
  const lost = state.known[page];
  if (lost === undefined) return;
  finishPage(state, page, lost.report.counts);
  state.ending ??= 'lost-page';
}

/** Nothing more is expected of a page. */
export function finishPage(state: BatchState, page: number, counts: BatchCounts): void {
  // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- numbered by page
  delete state.known[page];
  state.finished = addUp([state.finished, counts]);
  state.finishedPages = withPages(state.finishedPages, [page]);
}

/**
 * Whether a page may be given places. In a chain of pages, which hold the items of one job, all before must be done, and
 * nothing may be open in a later one, where an earlier run has started it.
 */
export function mayStartItems({ known, chained, finishedPages }: BatchState, page: number): boolean {
  for (let each = page; hasPage(chained, each); each -= 1)
    if (!hasPage(finishedPages, each - 1)) return false;
  for (let each = page + 1; hasPage(chained, each); each += 1)
    if ((known[each]?.report.open ?? 0) > 0) return false;
  return true;
}

/** What decides about the places of a page. */
export interface PlacesOfPage {
  readonly allotted: number;
  readonly report: Pick<PageReport, 'wants' | 'places' | 'open'>;
}

/** The places that a page may be using: by the latest allotment, or the one before it, but at most one for each job. */
export function reserved({ allotted, report }: PlacesOfPage): number {
  return Math.min(report.wants, Math.max(allotted, report.places, report.open));
}

/**
 * Gives places in the order of the pages, so that all of them together never have more than `concurrency` open.
 *
 * @param pages by number, in rising order
 * @param mayStart whether a page may start items at present
 * @returns the pages whose places change, by number
 */
export function allot(
  concurrency: number,
  pages: readonly (readonly [number, PlacesOfPage])[],
  mayStart: (page: number) => boolean,
): Map<number, number> {
  const changes = new Map<number, number>();
  // The last ones give back first, so that the first ones come to their end.
  let excess = -concurrency;
  for (const [, { allotted, report }] of pages) excess += Math.min(allotted, report.wants);
  for (const [number, { allotted, report }] of [...pages].reverse()) {
    const used = Math.min(allotted, report.wants);
    const back = Math.min(excess, used);
    if (back <= 0) continue;
    changes.set(number, used - back);
    excess -= back;
  }
  if (changes.size > 0) return changes;

  let free = concurrency;
  for (const [, page] of pages) free -= reserved(page);
  for (const [number, page] of pages) {
    if (free <= 0) break;
    const more = Math.min(free, page.report.wants - reserved(page));
    if (more <= 0 || !mayStart(number)) continue;
    changes.set(number, reserved(page) + more);
    free -= more;
  }
  return changes;
}

export function allotmentOf({ tolerate, ending }: BatchState, { allotted, report }: KnownPage): Allotment {
  return {
    places: allotted,
    // All reported failures are within the tolerance, or the batch would be ending.
    tolerated: tolerate === null ? null : failuresOf(report.counts),
    mode: ending === null ? 'run' : MODES[ending],
  };
}

export function memoOf(state: BatchState): BatchMemo {
  const { batchId, items, pages, again, concurrency, tolerate, earlier, run, finishedPages } = state;
  const begun = begunPages(state).map(([number]) => number);
  const own = { run, pages: withPages(finishedPages, begun) };
  return { batchId, items, pages, again, concurrency, tolerate, begun: [...earlier, own] };
}

/** What the items that have ended add up to, in an earlier run of the batch too. */
export function countsOf(state: BatchState): BatchCounts {
  return addUp([state.finished, ...Object.values(state.known).map(({ report }) => report.counts)]);
}

export function progressOf(state: BatchState, ended: BatchProgress['state'] | null): BatchProgress {
  const known = Object.values(state.known);
  const done = countPages(state.finishedPages);
  const going = state.paused ? 'paused' : 'running';
  return {
    ...summarySoFar(state),
    state: ended ?? (state.ending === null ? going : 'ending'),
    message: ended === 'failed' || state.ending !== null ? (whyIncomplete(state)?.message ?? null) : null,
    open: known.reduce((sum, { report }) => sum + report.open, 0),
    concurrency: state.concurrency,
    run: state.run,
    pages: { total: state.pages, handedOver: done + known.length, done },
    openPages: begunPages(state).map(([number]) => number),
    donePages: state.finishedPages,
  };
}

function summarySoFar(state: BatchState): Omit<BatchSummary, 'endedAt'> {
  const { batchId, items, failures, startedAt } = state;
  const begun = { startedAt: new Date(startedAt).toISOString() };
  return { batchId, items, ...countsOf(state), firstFailures: failures, ...begun };
}

export function summaryOf(state: BatchState): BatchSummary {
  return { ...summarySoFar(state), endedAt: new Date(Date.now()).toISOString() };
}

export function batchFailure(type: BatchFailureType, message: string, ...details: readonly BatchSummary[]) {
  return ApplicationFailure.nonRetryable(message, type, ...details);
}

/** Why a batch ends before its items, and what helps; null for a batch that is done or was cancelled. */
export function whyIncomplete(state: BatchState): { type: BatchFailureType; message: string } | null {
  const { items, ending } = state;
  const counts = countsOf(state);
  const ended = `${counts.settled} of ${counted(items, 'item')} ended.`;
  if (ending === 'tolerance') {
    const message =
      `${counted(failuresOf(counts), 'item')} failed, more than the tolerance allows. ${ended} Started again, the batch ` +
      'starts nothing unless its tolerance is raised (`--tolerate`); a retry sends what was not sent or was rejected.';
    return { type: 'ToleranceExceeded', message };
  }
  const isComplete = ending !== 'not-handed-over' && counts.settled >= items;
  if (isComplete || ending === 'cancel' || ending === 'cancel-running') return null;
  const why =
    ending === 'not-handed-over'
      ? 'Not all pages were handed over: the starter ended before that.'
      : 'A page was ended before its items.';
  const message = `${why} ${ended} The same batch started again continues: what has ended is not sent again.`;
  return { type: 'BatchIncomplete', message };
}
