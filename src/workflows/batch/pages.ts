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
import { hasPage, pageInput, pagesIn } from '../../core/batch/pages';
import {
  type Allotment,
  BATCH_PAGE_WORKFLOW,
  type BatchPage,
  MEMO_PAGES,
  noPlaces,
} from '../../core/batch/workflows';
import { pageWorkflowId } from '../../core/ids';
import { pageStart } from '../../core/starts';
import { wasReset } from '../activity-proxies';
import { allotSignal } from './page';
import {
  allHaveAnswered,
  allot,
  allotmentOf,
  type BatchState,
  begunPages,
  finishPage,
  knownPages,
  losePage,
  mayStartItems,
  memoOf,
  reserved,
} from './state';

/** How many pages are signalled or started at once. */
const GROUP_SIZE = 50;

/**
 * Pages that a batch closes at its end. Each costs up to five events, and a batch that is being cancelled can't continue
 * as new. Further ones find out by themselves within a quarter of an hour.
 */
const MAX_CLOSED_PAGES = 1_000;

/**
 * Starts the pages of a batch whose items came with it. They outlive this run, and report to the batch's workflow id. A
 * batch that was reset starts none: a page that does not exist may have been forgotten.
 */
export async function startPages(state: BatchState, pages: readonly BatchPage[]): Promise<void> {
  for (let from = 0; from < pages.length; from += GROUP_SIZE) {
    const mayBeForgotten = await wasReset();
    const group = pages.slice(from, from + GROUP_SIZE);
    const numbers = group.map(({ number }) => number);
    if (mayBeForgotten) await lookForPages(state, numbers);
    else await Promise.all(group.map((page) => startPage(state, page)));
  }
}

/** Ends the batch if a page that has not reported does not exist. */
export async function lookForPages(state: BatchState, pages: readonly number[]): Promise<void> {
  const silent = pages.filter((page) => !(page in state.known) && !hasPage(state.finishedPages, page));
  const exist = await inGroups(silent, (page) => sendAllotment(state, page, noPlaces('run')));
  if (exist.includes(false)) state.ending ??= 'lost-page';
}

async function startPage({ batchId, run, earlier, again }: BatchState, page: BatchPage): Promise<void> {
  const batchWorkflowId = workflowInfo().workflowId;
  const input = pageInput({ batchWorkflowId, batchId, run, again }, page, earlier);
  try {
    // The cancellation of the batch reaches its pages by an allotment, which says what becomes of their follow-ups.
    await CancellationScope.nonCancellable(() =>
      startChild(BATCH_PAGE_WORKFLOW, {
        ...pageStart(input),
        workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
        parentClosePolicy: ParentClosePolicy.ABANDON,
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
  const due = begunPages(state).flatMap(([number, page]) => {
    const allotment = allotmentOf(state, page);
    const sent = JSON.stringify(allotment);
    return sent === page.lastSent ? [] : [{ number, page, allotment, sent }];
  });
  const exist = await inGroups(due, async ({ number, page, allotment, sent }) => {
    page.lastSent = sent;
    const exists = await sendAllotment(state, number, allotment);
    if (!exists) losePage(state, number);
    return exists;
  });
  // The other pages learn at once that the batch is ending.
  if (exist.includes(false)) await notifyPages(state);
}

/** The end of the batch closes its pages, whose results then are kept as long as its own. */
export async function closePages(state: BatchState): Promise<void> {
  const waiting = knownPages(state).filter(([, page]) => !page.begun);
  const pages = [...pagesIn(state.finishedPages), ...waiting.map(([number]) => number)];
  await inGroups(pages.slice(0, MAX_CLOSED_PAGES), (page) => sendAllotment(state, page, noPlaces('leave')));
}

async function inGroups<T, R>(all: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < all.length; from += GROUP_SIZE) {
    results.push(...(await Promise.all(all.slice(from, from + GROUP_SIZE).map(work))));
  }
  return results;
}

function allotPlaces(state: BatchState): void {
  if (state.ending !== null) {
    // A page without places has reported everything: nothing more is expected of it.
    for (const [number, page] of begunPages(state))
      if (reserved(page) === 0) finishPage(state, number, page.report.counts);
    return;
  }
  const answered = allHaveAnswered(state);
  const mayStart = (page: number): boolean => answered && mayStartItems(state, page);
  const pages = knownPages(state);
  for (const [number, places] of allot(state.paused ? 0 : state.concurrency, pages, mayStart)) {
    const page = state.known[number];
    if (page !== undefined) Object.assign(page, { begun: true, allotted: places });
  }
}

/** @returns false if the page no longer exists */
async function sendAllotment({ batchId, run }: BatchState, page: number, allotment: Allotment) {
  try {
    await getExternalWorkflowHandle(pageWorkflowId(batchId, run, page)).signal(allotSignal, allotment);
    return true;
  } catch (error) {
    if (isCancellation(error)) throw error;
    return false;
  }
}
