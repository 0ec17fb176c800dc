import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  CancellationScope,
  getExternalWorkflowHandle,
  isCancellation,
  ParentClosePolicy,
  startChild,
  upsertMemo,
  WorkflowIdReusePolicy,
  workflowInfo,
} from '@temporalio/workflow';
import { hasPage, pageInput, pagesIn } from '../../core/batch-pages';
import { BATCH_PRIORITY_KEY } from '../../core/batch';
import {
  type Allotment,
  BATCH_PAGE_WORKFLOW,
  BATCH_TASK_TIMEOUT_MS,
  type BatchPage,
  MEMO_PAGES,
} from '../../core/batch-workflows';
import { pageSummary } from '../../core/names';
import { pageWorkflowId } from '../../core/ids';
import { ownRunId } from '../activity-proxies';
import { keyword } from '../keyword';
import { NO_COUNTS } from './counts';
import {
  allHaveAnswered,
  beginPage,
  type BatchState,
  type BegunPage,
  finishPage,
  losePage,
  mayStartItems,
  memoOf,
  modeOf,
} from './state';
import { allotSignal } from './page';
import { allot, reserved } from './allotment';

/** How many pages are signalled or started at once. */
const GROUP_SIZE = 50;

/**
 * How many pages a batch closes at its end. Each costs it up to five events, and a batch that is being cancelled can't
 * continue as new. Further ones find out by themselves within a quarter of an hour.
 */
const MAX_CLOSED_PAGES = 1_000;

const CLOSE: Allotment = { places: 0, tolerated: null, mode: 'leave' };

/**
 * Starts the pages of a batch whose items came with it. They outlive this run, and report to the batch's workflow id. A
 * batch that was reset starts none: a page that does not exist may have been forgotten.
 */
export async function startPages(state: BatchState, pages: readonly BatchPage[]): Promise<void> {
  for (let from = 0; from < pages.length; from += GROUP_SIZE) {
    const wasReset = (await ownRunId()) !== workflowInfo().firstExecutionRunId;
    const group = pages.slice(from, from + GROUP_SIZE);
    if (wasReset)
      await lookForPages(
        state,
        group.map(({ number }) => number),
      );
    else await Promise.all(group.map((page) => startPage(state, page)));
  }
}

/** Ends the batch where a page that has not reported yet does not exist. */
export async function lookForPages(state: BatchState, pages: readonly number[]): Promise<void> {
  const silent = pages.filter(
    (page) => !state.begun[page] && !state.waiting[page] && !hasPage(state.finishedPages, page),
  );
  const exist = await inGroups(silent, (page) =>
    sendAllotment(pageIdOf(state, page), { places: 0, tolerated: null, mode: 'run' }),
  );
  if (exist.includes(false)) state.ending ??= 'lost-page';
}

async function startPage({ batchId, run, earlier, again }: BatchState, page: BatchPage): Promise<void> {
  const { workflowId: batchWorkflowId } = workflowInfo();
  const input = pageInput({ batchWorkflowId, batchId, run, again }, page, earlier);
  try {
    // The cancellation of the batch reaches its pages by an allotment, which says what becomes of their follow-ups.
    await CancellationScope.nonCancellable(() =>
      startChild(BATCH_PAGE_WORKFLOW, {
        workflowId: pageWorkflowId(batchId, run, page.number),
        args: [input],
        workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
        parentClosePolicy: ParentClosePolicy.ABANDON,
        priority: { priorityKey: BATCH_PRIORITY_KEY },
        workflowTaskTimeout: BATCH_TASK_TIMEOUT_MS,
        // As a page that was handed over has it from its start.
        typedSearchAttributes: [keyword('FollowUpBatch', batchId)],
        staticSummary: pageSummary(page.number, page.items.length),
      }),
    );
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

/** Grants places, and signals each page whose allotment has changed. A page that no longer exists ends the batch. */
export async function notifyPages(state: BatchState): Promise<void> {
  allotPlaces(state);
  const memo = memoOf(state);
  // In history before any of the pages can start an item.
  if (JSON.stringify(memo) !== JSON.stringify(workflowInfo().memo?.[MEMO_PAGES]))
    upsertMemo({ [MEMO_PAGES]: memo });
  const due = Object.entries(state.begun).flatMap(([number, page]) => {
    const allotment = allotmentOf(state, page);
    const sent = JSON.stringify(allotment);
    return sent === page.lastSent ? [] : [{ number: Number(number), page, allotment, sent }];
  });
  const areThere = await inGroups(due, async ({ number, page, allotment, sent }) => {
    page.lastSent = sent;
    const isThere = await sendAllotment(pageIdOf(state, number), allotment);
    if (!isThere) losePage(state, number);
    return isThere;
  });
  // The other pages learn at once that the batch is ending.
  if (areThere.includes(false)) await notifyPages(state);
}

/** The end of the batch closes its pages, whose results then are kept as long as its own. */
export async function closePages(state: BatchState): Promise<void> {
  const waiting = Object.keys(state.waiting).map(Number);
  const pages = [...pagesIn(state.finishedPages), ...waiting].slice(0, MAX_CLOSED_PAGES);
  await inGroups(pages, (page) => sendAllotment(pageIdOf(state, page), CLOSE));
}

async function inGroups<T, R>(all: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < all.length; from += GROUP_SIZE) {
    results.push(...(await Promise.all(all.slice(from, from + GROUP_SIZE).map(work))));
  }
  return results;
}

function pageIdOf({ batchId, run }: BatchState, page: number): string {
  return pageWorkflowId(batchId, run, page);
}

function allotPlaces(state: BatchState): void {
  const begun = Object.entries(state.begun);
  if (state.ending !== null) {
    // A page without places has told everything: nothing is expected of it.
    for (const [number, page] of begun)
      if (reserved(page) === 0) finishPage(state, Number(number), page.report);
    return;
  }
  const open = new Map<number, BegunPage>(begun.map(([number, page]) => [Number(number), page]));
  const waiting = Object.entries(state.waiting).map(([number, page]) => ({ page: Number(number), ...page }));
  const answered = allHaveAnswered(state);
  const mayStart = (number: number): boolean => {
    const page = state.begun[number]?.report ?? state.waiting[number];
    return answered && page !== undefined && mayStartItems(state, number, page);
  };
  const concurrency = state.paused ? 0 : state.concurrency;
  for (const [number, places] of allot(concurrency, open, waiting, mayStart)) {
    const page = state.waiting[number];
    if (page !== undefined)
      beginPage(state, number, { ...page, places: 0, open: 0, counts: NO_COUNTS, failures: 0 });
    const allotted = state.begun[number];
    if (allotted !== undefined) allotted.allotted = places;
  }
}

function allotmentOf(state: BatchState, { allotted, report }: BegunPage): Allotment {
  return {
    places: allotted,
    // All reported failures are within the tolerance, or the batch would be ending.
    tolerated: state.tolerate === null ? null : report.failures,
    mode: modeOf(state.ending),
  };
}

/** @returns false if the page no longer exists */
async function sendAllotment(pageId: string, allotment: Allotment): Promise<boolean> {
  try {
    await getExternalWorkflowHandle(pageId).signal(allotSignal, allotment);
    return true;
  } catch (error) {
    if (isCancellation(error)) throw error;
    return false;
  }
}
