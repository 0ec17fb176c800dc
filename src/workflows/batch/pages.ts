import {
  getExternalWorkflowHandle,
  isCancellation,
  ParentClosePolicy,
  startChild,
  WorkflowIdReusePolicy,
  workflowInfo,
} from '@temporalio/workflow';
import { BATCH_PRIORITY_KEY } from '../../contract/batch';
import {
  type Allotment,
  BATCH_PAGE_WORKFLOW,
  type BatchPage,
  type PageInput,
} from '../../contract/batch-workflows';
import { pageSummary } from '../../contract/start-words';
import { pageWorkflowId } from '../../contract/workflow-id';
import { keyword } from '../keyword';
import { failuresOf } from './counts';
import { modeOf } from './ending';
import { allotSignal } from './page';
import { allot, type OpenPage } from './places';
import { type BatchState, type BegunPage, takeReport } from './state';

/** Pages that are spoken to at once. */
const AT_ONCE = 50;

/** Starts a page whose items have come with the batch. It outlives this run, and reports to the batch's workflow id. */
export async function startPage({ batchId, run }: BatchState, page: BatchPage): Promise<void> {
  const input: PageInput = { batchWorkflowId: workflowInfo().workflowId, batchId, run, page };
  await startChild(BATCH_PAGE_WORKFLOW, {
    workflowId: pageWorkflowId(batchId, run, page.number),
    args: [input],
    workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
    parentClosePolicy: ParentClosePolicy.ABANDON,
    priority: { priorityKey: BATCH_PRIORITY_KEY },
    // As a page that was handed over has it from its start.
    typedSearchAttributes: [keyword('FollowUpBatch', batchId)],
    staticSummary: pageSummary(page.number, page.items.length),
  });
}

/** Grants places, and tells each page what has changed for it. One that isn't there any more takes the batch to its end. */
export async function tellPages(state: BatchState): Promise<void> {
  allotPlaces(state);
  const due = Object.values(state.begun).flatMap((page) => {
    const allotment = allotmentOf(state, page);
    const words = JSON.stringify(allotment);
    return words === page.told ? [] : [{ page, allotment, words }];
  });
  const gone: BegunPage[] = [];
  for (let from = 0; from < due.length; from += AT_ONCE) {
    await Promise.all(
      due.slice(from, from + AT_ONCE).map(async ({ page, allotment, words }) => {
        page.told = words;
        if (await tell(page.report.workflowId, allotment)) return;
        lose(state, page.report.page);
        gone.push(page);
      }),
    );
  }
  // The others hear at once that the batch comes to its end.
  if (gone.length > 0) await tellPages(state);
}

/** Pages of an earlier run of this batch, which was terminated: nothing is started by them any more. */
export async function sendAway(pageIds: readonly string[]): Promise<void> {
  for (const pageId of pageIds) await tell(pageId, { places: 0, tolerated: null, mode: 'leave' });
}

function allotPlaces(state: BatchState): void {
  const waiting = Object.values(state.waiting);
  if (state.ending !== null) {
    // Every page is told, those too that have not begun.
    for (const { page } of waiting) begin(state, page, 0);
    return;
  }
  const open = new Map<number, OpenPage>(
    Object.entries(state.begun).map(([number, page]) => [Number(number), page]),
  );
  const mayBegin = ({ after }: { after: number | null }) => after === null || state.awaited.includes(after);
  for (const [number, places] of allot(state.paused ? 0 : state.concurrency, open, waiting, mayBegin)) {
    const begun = state.begun[number];
    if (begun === undefined) begin(state, number, places);
    else begun.allotted = places;
  }
}

function begin(state: BatchState, number: number, places: number): void {
  const report = state.waiting[number];
  if (report === undefined) return;
  // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- numbered by page
  delete state.waiting[number];
  state.begun[number] = { allotted: places, told: '', report };
  const awaited = report.after === null ? -1 : state.awaited.indexOf(report.after);
  if (awaited >= 0) state.awaited.splice(awaited, 1);
}

function allotmentOf(state: BatchState, { allotted, report }: BegunPage): Allotment {
  return {
    places: allotted,
    // Whatever the batch has heard of is within the tolerance, or else it would be ending.
    tolerated: state.tolerate === null ? null : failuresOf(report.counts),
    mode: modeOf(state.ending),
  };
}

/** Somebody has terminated a page: what it has sent goes on, and what it hasn't is not sent. */
function lose(state: BatchState, page: number): void {
  const lost = state.begun[page];
  if (lost === undefined) return;
  takeReport(state, { ...lost.report, done: true }, Date.now());
  state.ending ??= 'lost-page';
}

/** @returns false when there is no such workflow any more */
async function tell(pageId: string, allotment: Allotment): Promise<boolean> {
  try {
    await getExternalWorkflowHandle(pageId).signal(allotSignal, allotment);
    return true;
  } catch (error) {
    if (isCancellation(error)) throw error;
    return false;
  }
}
