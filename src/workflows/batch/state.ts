import type { FailedItem, BatchSummary, Tolerance } from '../../contract/batch';
import type { BatchCounts, BatchProgress, PageReport } from '../../contract/batch-workflows';
import { addUp, failuresOf, firstFailures, NO_COUNTS } from './counts';

/** Why a batch starts no further item. */
export type Ending = 'tolerance' | 'cancel' | 'cancel-running' | 'lost-page' | 'not-handed-over';

/** A page that has been allotted places. */
export interface BegunPage {
  allotted: number;
  /** What the page was told last, in words that compare. */
  told: string;
  report: PageReport;
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
  concurrency: number;
  paused: boolean;
  ending: Ending | null;
  /** What the pages that are done add up to. */
  finished: BatchCounts;
  finishedPages: number;
  failures: readonly FailedItem[];
  /** Pages that may have follow-ups open. */
  readonly begun: Record<number, BegunPage>;
  /** Pages that have reported and wait for their turn. */
  readonly waiting: Record<number, PageReport>;
  /** Pages that are done, and for which a later one may still ask. */
  readonly awaited: number[];
  /** When a page reported last for the first time. */
  lastHandOverAt: number;
}

/** What a run that continues as new hands to the next one. */
export interface ContinuedBatch {
  readonly continued: BatchState;
}

/** Keeps a page's report; a later one replaces an earlier one, and the last one is added up. */
export function takeReport(state: BatchState, report: PageReport, now: number): void {
  const { page } = report;
  const begun = state.begun[page];
  const isNew = begun === undefined && state.waiting[page] === undefined;
  if (isNew) state.lastHandOverAt = now;
  if (!report.done) {
    if (begun === undefined) state.waiting[page] = report;
    else begun.report = report;
    return;
  }
  // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- numbered by page
  delete state.begun[page];
  // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- numbered by page
  delete state.waiting[page];
  state.finished = addUp([state.finished, report.counts]);
  state.failures = firstFailures([state.failures, report.failures]);
  state.finishedPages += 1;
  if (report.followedBy) state.awaited.push(page);
}

export function countsOf(state: BatchState): BatchCounts {
  return addUp([state.finished, ...Object.values(state.begun).map(({ report }) => report.counts)]);
}

export function progressOf(state: BatchState, ended: BatchProgress['state'] | null): BatchProgress {
  const begun = Object.entries(state.begun);
  const done = state.finishedPages;
  const going = state.paused ? 'paused' : 'running';
  return {
    batchId: state.batchId,
    state: ended ?? (state.ending === null ? going : 'ending'),
    items: state.items,
    ...countsOf(state),
    firstFailures: firstFailures([state.failures, ...begun.map(([, { report }]) => report.failures)]),
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
  input: Pick<BatchState, 'batchId' | 'run' | 'startedAt' | 'items' | 'pages' | 'tolerate' | 'concurrency'>,
): BatchState {
  return {
    ...input,
    paused: false,
    ending: null,
    finished: NO_COUNTS,
    finishedPages: 0,
    failures: [],
    begun: {},
    waiting: {},
    awaited: [],
    lastHandOverAt: input.startedAt,
  };
}

export function failuresSoFar(state: BatchState): number {
  return failuresOf(countsOf(state));
}
