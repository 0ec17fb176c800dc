import { ApplicationFailure } from '@temporalio/workflow';
import type { BatchSummary, FailedItem, Tolerance, TryAgain } from '../../core/batch';
import { countPages, hasPage, joinPages, pagesIn, rangesOf } from '../../core/batch-pages';
import {
  type Allotment,
  type BatchCounts,
  type BatchFailureType,
  type BatchMemo,
  type BatchProgress,
  type BegunPages,
  type PageRanges,
  type PageReport,
  summaryOfProgress,
} from '../../core/batch-workflows';
import { addUp, failuresOf, firstFailures, NO_COUNTS } from './counts';

/** Why a batch starts no further item. */
type Ending = 'tolerance' | 'cancel' | 'cancel-running' | 'lost-page' | 'not-handed-over';

/** What a batch keeps of a page that has begun; `failures` are their number. */
type KnownReport = Omit<PageReport, 'run' | 'page' | 'failures' | 'done'> & { readonly failures: number };

/** A page that has been allotted places, or that an earlier run of the batch had begun: it may have follow-ups open. */
export interface BegunPage {
  allotted: number;
  /** The allotment that was sent last, as JSON. */
  lastSent: string;
  report: KnownReport;
}

/** A page that waits for its turn, with nothing open and nothing to tell. */
type WaitingPage = Pick<KnownReport, 'after' | 'followedBy' | 'wants' | 'pageRun'>;

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
  ending: Ending | null;
  /** What the pages that are done add up to. */
  finished: BatchCounts;
  finishedPages: PageRanges;
  failures: readonly FailedItem[];
  /** Pages that may have follow-ups open. */
  readonly begun: Record<number, BegunPage>;
  readonly waiting: Record<number, WaitingPage>;
  /** Looks in a row at which nothing went on and no further page had come. */
  quietLooks: number;
}

/** What a run that continues as new hands to the next one. */
export interface ContinuedBatch {
  readonly continued: BatchState;
}

/**
 * Keeps a page's report; a later one replaces an earlier one, and the last one is added up. A page whose number is done, or
 * in whose place another one has begun, gets no places: that one may have started its items.
 */
export function takeReport(state: BatchState, report: PageReport): void {
  const { page, pageRun, after, followedBy, wants } = report;
  if (page < 1 || page > state.pages || hasPage(state.finishedPages, page)) return;
  const begun = state.begun[page];
  if (begun !== undefined && begun.report.pageRun !== pageRun) {
    losePage(state, page);
    return;
  }
  state.failures = firstFailures([state.failures, report.failures]);
  if (begun === undefined && state.waiting[page] === undefined) state.quietLooks = 0;
  if (report.done) {
    finishPage(state, page, report);
    // Somebody has cancelled it before its items had ended.
    if (wants > 0) state.ending ??= 'lost-page';
  } else if (begun !== undefined) begun.report = known(report);
  else if (wasBegun(state, page)) beginPage(state, page, known(report));
  else state.waiting[page] = { pageRun, after, followedBy, wants };
}

/** From now on it may have follow-ups open. */
export function beginPage(state: BatchState, page: number, report: KnownReport): void {
  // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- numbered by page
  delete state.waiting[page];
  state.begun[page] = { allotted: 0, lastSent: '', report };
}

function wasBegun({ earlier }: BatchState, page: number): boolean {
  return earlier.some(({ pages }) => hasPage(pages, page));
}

/**
 * Whether every page that an earlier run had begun has told which of its follow-ups are open. Until then no place is given,
 * because nobody knows how many are left.
 */
export function allHaveAnswered(state: BatchState): boolean {
  for (const { pages } of state.earlier) {
    for (const page of pagesIn(pages)) {
      if (state.begun[page] === undefined && !hasPage(state.finishedPages, page)) return false;
    }
  }
  return true;
}

/** Somebody has ended a page: what it has sent goes on, and what it hasn't is not sent. */
export function losePage(state: BatchState, page: number): void {
  const lost = state.begun[page];
  if (lost === undefined) return;
  finishPage(state, page, lost.report);
  state.ending ??= 'lost-page';
}

/** Nothing more is expected of a page. */
export function finishPage(state: BatchState, page: number, { counts }: Pick<PageReport, 'counts'>): void {
  // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- numbered by page
  delete state.begun[page];
  // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- numbered by page
  delete state.waiting[page];
  state.finished = addUp([state.finished, counts]);
  state.finishedPages = joinPages(state.finishedPages, rangesOf([page]));
}

function known({ pageRun, after, followedBy, wants, places, open, counts }: PageReport): KnownReport {
  return { pageRun, after, followedBy, wants, places, open, counts, failures: failuresOf(counts) };
}

/** What the batch leaves in its memo. */
export function memoOf(state: BatchState): BatchMemo {
  const { batchId, items, pages, again, concurrency, tolerate, earlier, run } = state;
  const { begun, finishedPages } = state;
  const own = joinPages(finishedPages, rangesOf(Object.keys(begun).map(Number)));
  return { batchId, items, pages, again, concurrency, tolerate, begun: [...earlier, { run, pages: own }] };
}

function countsOf(state: BatchState): BatchCounts {
  return addUp([state.finished, ...Object.values(state.begun).map(({ report }) => report.counts)]);
}

export function progressOf(state: BatchState, ended: BatchProgress['state'] | null): BatchProgress {
  const begun = Object.entries(state.begun);
  const done = countPages(state.finishedPages);
  const going = state.paused ? 'paused' : 'running';
  return {
    batchId: state.batchId,
    state: ended ?? (state.ending === null ? going : 'ending'),
    items: state.items,
    ...countsOf(state),
    firstFailures: state.failures,
    startedAt: new Date(state.startedAt).toISOString(),
    open: begun.reduce((sum, [, { report }]) => sum + report.open, 0),
    concurrency: state.concurrency,
    run: state.run,
    pages: {
      total: state.pages,
      handedOver: done + begun.length + Object.keys(state.waiting).length,
      done,
    },
    openPages: begun.map(([number]) => Number(number)),
    donePages: state.finishedPages,
  };
}

export function summaryOf(state: BatchState, now: number): BatchSummary {
  return summaryOfProgress(progressOf(state, null), new Date(now).toISOString());
}

/** What a batch knows when it begins. */
export type NewBatch = Omit<
  BatchState,
  'paused' | 'ending' | 'finished' | 'finishedPages' | 'failures' | 'begun' | 'waiting' | 'quietLooks'
>;

export function initialState(batch: NewBatch): BatchState {
  return {
    ...batch,
    paused: false,
    ending: null,
    finished: NO_COUNTS,
    finishedPages: [],
    failures: [],
    begun: {},
    waiting: {},
    quietLooks: 0,
  };
}

/** Also those of an earlier run of the batch. */
export function failuresSoFar({ finished, begun }: BatchState): number {
  return Object.values(begun).reduce((sum, { report }) => sum + report.failures, failuresOf(finished));
}

/**
 * Whether a page may be given places. Pages that hold the items of one job make a chain, in which one follow-up is open at a
 * time: the page before must be done, and nothing may be open in a later one, where an earlier run has started it.
 */
export function mayStartItems(
  { begun, waiting, finishedPages }: BatchState,
  page: number,
  { after }: Pick<PageReport, 'after'>,
): boolean {
  if (after !== null && !hasPage(finishedPages, after)) return false;
  for (let next = page + 1; ; next += 1) {
    const later = begun[next]?.report ?? waiting[next];
    if (later?.after !== next - 1) return true;
    if ((begun[next]?.report.open ?? 0) > 0) return false;
  }
}

/** Whether the pages of a batch go on. */
export function modeOf(ending: Ending | null): Allotment['mode'] {
  switch (ending) {
    case null:
      return 'run';
    case 'cancel':
      return 'leave';
    case 'cancel-running':
      return 'cancel';
    case 'tolerance':
    case 'lost-page':
    case 'not-handed-over':
      return 'drain';
  }
}

/** The failure by which a batch ends, with its summary; null where it is done. */
export function failureOf(state: BatchState, summary: BatchSummary): ApplicationFailure | null {
  const [type, message] = wordsOf(state, summary);
  if (type === null) return null;
  return ApplicationFailure.create({ type, message, nonRetryable: true, details: [summary] });
}

function wordsOf(state: BatchState, { settled, items }: BatchSummary): [BatchFailureType | null, string] {
  const ended = `${settled} of ${items} items have ended.`;
  const again = `${ended} The same batch started again goes on: what has ended is not sent again.`;
  if (state.ending === 'tolerance') {
    return [
      'ToleranceExceeded',
      `More items failed than the tolerance allows: ${failuresSoFar(state)}. ${ended} Started again, the batch starts ` +
        'nothing unless its tolerance is raised; a retry sends what was not sent or was rejected.',
    ];
  }
  if (state.ending === 'not-handed-over') {
    return ['BatchIncomplete', `Not all pages were handed over: the starter has ended before. ${again}`];
  }
  if (settled < items) return ['BatchIncomplete', `A page was ended before its items. ${again}`];
  return [null, ''];
}
