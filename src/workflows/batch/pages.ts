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
import { pagesIn } from '../../core/batch-pages';
import { BATCH_PRIORITY_KEY } from '../../core/batch';
import {
  type Allotment,
  BATCH_PAGE_WORKFLOW,
  BATCH_TASK_TIMEOUT_MS,
  type BatchPage,
  MEMO_PAGES,
  type PageInput,
  type PageReport,
} from '../../core/batch-workflows';
import { pageSummary } from '../../core/names';
import { pageWorkflowId } from '../../core/ids';
import { ownRunId } from '../activity-proxies';
import { keyword } from '../keyword';
import { NO_COUNTS } from './counts';
import { type BatchState, type BegunPage, losePage, mayBegin, memoOf, modeOf } from './state';
import { allotSignal } from './page';
import { allot, type OpenPage } from './allotment';

/** How many pages are signalled at once. */
const GROUP_SIZE = 50;

/**
 * Starts a page whose items have come with the batch. It outlives this run, and reports to the batch's workflow id. One
 * that is there already, because the batch was reset, counts as started.
 */
export async function startPage({ batchId, run }: BatchState, page: BatchPage): Promise<void> {
  const { workflowId: batchWorkflowId, firstExecutionRunId } = workflowInfo();
  const inDoubt = (await ownRunId()) !== firstExecutionRunId;
  const input: PageInput = { batchWorkflowId, batchId, run, page, inDoubt };
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
  const before = JSON.stringify(memoOf(state));
  allotPlaces(state);
  const memo = memoOf(state);
  // In history before any of the pages can start an item.
  if (JSON.stringify(memo) !== before) upsertMemo({ [MEMO_PAGES]: memo });
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

/**
 * Ends pages that are not part of this run: a page of an earlier run closes; a second page of a number that is done or
 * taken starts nothing and waits for the end.
 */
export async function dismissPages(
  state: BatchState,
  foreign: readonly Pick<PageReport, 'run' | 'page'>[],
): Promise<void> {
  await inGroups(foreign, async ({ run, page }) => {
    const mode = run === state.run ? 'drain' : 'leave';
    await sendAllotment(pageWorkflowId(state.batchId, run, page), { places: 0, tolerated: null, mode });
  });
}

/** The end of the batch closes its pages, whose results then are kept as long as its own. */
export async function closePages(state: BatchState): Promise<void> {
  await inGroups([...pagesIn(state.finishedPages)], async (page) => {
    await sendAllotment(pageIdOf(state, page), { places: 0, tolerated: null, mode: 'leave' });
  });
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
  const waiting = Object.entries(state.waiting).map(([number, page]) => ({ page: Number(number), ...page }));
  if (state.ending !== null) {
    // Every page is notified, also those that have not begun.
    for (const { page } of waiting) begin(state, page, 0);
    return;
  }
  const open = new Map<number, OpenPage>(
    Object.entries(state.begun).map(([number, page]) => [Number(number), page]),
  );
  const concurrency = state.paused ? 0 : state.concurrency;
  for (const [number, places] of allot(concurrency, open, waiting, (page) => mayBegin(state, page))) {
    const begun = state.begun[number];
    if (begun === undefined) begin(state, number, places);
    else begun.allotted = places;
  }
}

function begin(state: BatchState, number: number, places: number): void {
  const page = state.waiting[number];
  if (page === undefined) return;
  // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- numbered by page
  delete state.waiting[number];
  state.begun[number] = {
    allotted: places,
    lastSent: '',
    report: { ...page, places: 0, open: 0, counts: NO_COUNTS },
  };
  const awaited = page.after === null ? -1 : state.awaited.indexOf(page.after);
  if (awaited >= 0) state.awaited.splice(awaited, 1);
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
