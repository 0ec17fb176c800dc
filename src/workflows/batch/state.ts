import { ApplicationFailure } from '@temporalio/workflow';
import type { BatchSummary, FailedItem, Tolerance, TryAgain } from '../../core/batch';
import { countPages, hasPage, joinPages, rangesOf } from '../../core/batch-pages';
import type {
  Allotment,
  BatchCounts,
  BatchFailureType,
  BatchMemo,
  BatchProgress,
  BegunPages,
  PageRanges,
  PageReport,
} from '../../core/batch-workflows';
import { addUp, failuresOf, firstFailures, NO_COUNTS } from './counts';

/** Why a batch starts no further item. */
type Ending = 'tolerance' | 'cancel' | 'cancel-running' | 'lost-page' | 'not-handed-over';

/** What a batch keeps of a page that has begun; `failures` are their number. */
type KnownReport = Omit<PageReport, 'run' | 'page' | 'failures' | 'done'> & { readonly failures: number };

/** A page that has been allotted places. */
export interface BegunPage {
  allotted: number;
  /** The allotment that was sent last, as JSON. */
  lastSent: string;
  report: KnownReport;
}

/**
 * A page that waits for its turn: there may be ten thousand, and all must fit into one payload. Its failures are those that
 * it has taken over from an earlier run of the batch.
 */
type WaitingPage = Pick<KnownReport, 'after' | 'followedBy' | 'wants' | 'pageRun' | 'failures'>;

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
  /** Pages that are done, and for which a later one may still ask. */
  readonly awaited: number[];
  /** When a page reported last for the first time. */
  lastHandOverAt: number;
}

/** What a run that continues as new hands to the next one. */
export interface ContinuedBatch {
  readonly continued: BatchState;
}

/**
 * Keeps a page's report; a later one replaces an earlier one, and the last one is added up.
 *
 * @returns false for a page that has no business here: its number is done, or another page has begun with it. It must not
 *   start an item, because that page may have started it before
 */
export function takeReport(state: BatchState, report: PageReport, now: number): boolean {
  const { page, pageRun } = report;
  const begun = state.begun[page];
  if (hasPage(state.finishedPages, page)) return report.done;
  if (begun !== undefined && begun.report.pageRun !== pageRun) {
    losePage(state, page);
    return false;
  }
  state.failures = firstFailures([state.failures, report.failures]);
  if (begun === undefined && state.waiting[page] === undefined) state.lastHandOverAt = now;
  if (report.done) {
    finishPage(state, page, report);
    // Somebody has cancelled it before its items had ended.
    if (report.wants > 0) state.ending ??= 'lost-page';
  } else if (begun !== undefined) begun.report = known(report);
  else state.waiting[page] = waitingPage(report);
  return true;
}

/** Somebody has ended a page: what it has sent goes on, and what it hasn't is not sent. */
export function losePage(state: BatchState, page: number): void {
  const lost = state.begun[page];
  if (lost === undefined) return;
  finishPage(state, page, lost.report);
  state.ending ??= 'lost-page';
}

function finishPage(
  state: BatchState,
  page: number,
  report: Pick<PageReport, 'counts' | 'followedBy'>,
): void {
  // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- numbered by page
  delete state.begun[page];
  // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- numbered by page
  delete state.waiting[page];
  state.finished = addUp([state.finished, report.counts]);
  state.finishedPages = joinPages(state.finishedPages, rangesOf([page]));
  if (report.followedBy) state.awaited.push(page);
}

function known({ pageRun, after, followedBy, wants, places, open, counts }: PageReport): KnownReport {
  return { pageRun, after, followedBy, wants, places, open, counts, failures: failuresOf(counts) };
}

function waitingPage({ pageRun, after, followedBy, wants, counts }: PageReport): WaitingPage {
  return { pageRun, after, followedBy, wants, failures: failuresOf(counts) };
}

/** What the batch leaves in its memo. */
export function memoOf({
  batchId,
  items,
  pages,
  again,
  earlier,
  run,
  begun,
  finishedPages,
}: BatchState): BatchMemo {
  const own = joinPages(finishedPages, rangesOf(Object.keys(begun).map(Number)));
  return { batchId, items, pages, again, begun: [...earlier, { run, pages: own }] };
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
  const {
    batchId,
    items,
    settled,
    byStatus,
    byFailure,
    byEvidence,
    unknownDeliveries,
    firstFailures: failed,
  } = progressOf(state, null);
  return {
    batchId,
    items,
    settled,
    byStatus,
    byFailure,
    byEvidence,
    unknownDeliveries,
    firstFailures: failed,
    startedAt: new Date(state.startedAt).toISOString(),
    endedAt: new Date(now).toISOString(),
  };
}

export function initialState(
  input: Pick<
    BatchState,
    'batchId' | 'run' | 'startedAt' | 'items' | 'pages' | 'tolerate' | 'concurrency' | 'earlier' | 'again'
  >,
): BatchState {
  return {
    ...input,
    paused: false,
    ending: null,
    finished: NO_COUNTS,
    finishedPages: [],
    failures: [],
    begun: {},
    waiting: {},
    awaited: [],
    lastHandOverAt: input.startedAt,
  };
}

/** Also those of an earlier run of the batch, in pages that have not begun. */
export function failuresSoFar({ finished, begun, waiting }: BatchState): number {
  let failures = failuresOf(finished);
  for (const { report } of Object.values(begun)) failures += report.failures;
  for (const page of Object.values(waiting)) failures += page.failures;
  return failures;
}

/** Whether a page's turn may come: the one that holds earlier items of its job is done. */
export function mayBegin({ awaited }: BatchState, { after }: Pick<PageReport, 'after'>): boolean {
  return after === null || awaited.includes(after);
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
  const again = `${settled} of ${items} items have ended. The same batch started again goes on: what has ended is not sent again.`;
  if (state.ending === 'tolerance') {
    return [
      'ToleranceExceeded',
      `More items failed than the tolerance allows: ${failuresSoFar(state)}. ${again}`,
    ];
  }
  if (state.ending === 'not-handed-over') {
    return ['BatchIncomplete', `Not all pages were handed over: the starter has ended before. ${again}`];
  }
  if (settled < items) return ['BatchIncomplete', `A page was ended before its items. ${again}`];
  return [null, ''];
}
