import { defineSearchAttributeKey } from '@temporalio/common';
import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  defineQuery,
  defineUpdate,
  getExternalWorkflowHandle,
  isCancellation,
  ParentClosePolicy,
  setCurrentDetails,
  setHandler,
  startChild,
  upsertMemo,
  upsertSearchAttributes,
  WorkflowIdReusePolicy,
  workflowInfo,
} from '@temporalio/workflow';
import { cutPages } from '../../batch/pages';
import { BATCH_PRIORITY_KEY, type BatchSummary } from '../../contract/batch';
import {
  type Allotment,
  BATCH_PAGE_WORKFLOW,
  type BatchFailureType,
  type BatchInput,
  type BatchPage,
  type BatchProgress,
  MEMO_SUMMARY,
  type PageInput,
  QUERY_BATCH_PROGRESS,
  UPDATE_CANCEL_RUNNING,
  UPDATE_PAUSE,
  UPDATE_RESUME,
  UPDATE_SET_CONCURRENCY,
} from '../../contract/batch-workflows';
import { MAX_ATTRIBUTE_CHARACTERS, truncate } from '../../contract/bounds';
import { isRecord } from '../../contract/field-reader';
import { pageWorkflowId, runOf } from '../../contract/workflow-id';
import { type BatchPlan, checkBatch, concurrencyProblem } from './check-batch';
import { toleratedFailures } from './counts';
import { batchDetails } from './details';
import { allotSignal, reportSignal } from './page';
import { allot, type OpenPage } from './places';
import {
  type BatchState,
  type ContinuedBatch,
  type Ending,
  failuresSoFar,
  initialState,
  progressOf,
  summaryOf,
  takeReport,
} from './state';

export const batchProgressQuery = defineQuery<BatchProgress>(QUERY_BATCH_PROGRESS);
export const pauseUpdate = defineUpdate<BatchProgress>(UPDATE_PAUSE);
export const resumeUpdate = defineUpdate<BatchProgress>(UPDATE_RESUME);
export const setConcurrencyUpdate = defineUpdate<BatchProgress, [concurrency: number]>(
  UPDATE_SET_CONCURRENCY,
);
export const cancelRunningUpdate = defineUpdate<BatchProgress>(UPDATE_CANCEL_RUNNING);

/** A page that says nothing for so long is spoken to, which fails if somebody has terminated it. */
const SILENCE_MS = 10 * 60_000;

/** A batch whose pages don't all come within this time after the last one is given up: its starter has died. */
const HAND_OVER_MS = 3_600_000;

/** How long the end of a cancelled batch waits for its pages to tell what they have reached. */
const LAST_REPORTS_MS = 30_000;

/** Pages that are spoken to at once. */
const AT_ONCE = 50;

/**
 * Sends many follow-ups, so many at a time, and adds up how they end. Each item is a `followUp` workflow of its own; they
 * are run by pages, `followUpBatchPage` workflows, and this one only grants places and counts. It may continue as new at
 * any time, because its pages report to its workflow id.
 *
 * @returns the summary, never the items themselves
 * @throws ApplicationFailure `InvalidBatch`, `ToleranceExceeded` or `BatchIncomplete`, with the summary as its detail
 */
export async function followUpBatch(input: BatchInput | ContinuedBatch): Promise<BatchSummary> {
  const continued = continuedState(input);
  if (continued !== null) return new Batch(continued).run();
  const { workflowId, firstExecutionRunId, startTime } = workflowInfo();
  const checked = checkBatch(input, workflowId.replace(/^follow-up-batch:/, ''));
  if ('problems' in checked) {
    const message = `Invalid batch: ${checked.problems.join('; ')}. Nothing was sent.`;
    throw ApplicationFailure.create({
      type: 'InvalidBatch' satisfies BatchFailureType,
      message,
      nonRetryable: true,
    });
  }
  const { plan } = checked;
  const pages = plan.items === undefined ? [] : [...cutPages(plan.items)];
  const batch = new Batch(
    initialState({
      batchId: plan.batchId,
      run: runOf(firstExecutionRunId),
      startedAt: startTime.getTime(),
      items: plan.items?.length ?? plan.handedOver?.items ?? 0,
      pages: plan.items === undefined ? (plan.handedOver?.pages ?? 0) : pages.length,
      tolerate: plan.tolerate,
      concurrency: plan.concurrency,
    }),
  );
  markAsBatch(plan);
  return batch.run(pages);
}

class Batch {
  private readonly strangers: string[] = [];
  private reports = 0;
  private asked = 0;

  constructor(private readonly state: BatchState) {
    setHandler(reportSignal, (report) => {
      this.reports += 1;
      if (report.run !== state.run) this.strangers.push(report.workflowId);
      else takeReport(state, report, Date.now());
    });
    setHandler(batchProgressQuery, () => progressOf(state, null));
    setHandler(pauseUpdate, () => this.change(() => (state.paused = true)));
    setHandler(resumeUpdate, () => this.change(() => (state.paused = false)));
    setHandler(setConcurrencyUpdate, (concurrency) => this.change(() => (state.concurrency = concurrency)), {
      validator: (concurrency) => {
        const problem = concurrencyProblem(concurrency);
        if (problem !== undefined) {
          throw ApplicationFailure.create({ type: 'InvalidUpdate', message: problem, nonRetryable: true });
        }
      },
    });
    setHandler(cancelRunningUpdate, () => this.change(() => (state.ending = 'cancel-running')));
  }

  async run(pages: readonly BatchPage[] = []): Promise<BatchSummary> {
    const { state } = this;
    try {
      for (const page of pages) await this.startPage(page);
      await this.grantUntilDone();
    } catch (error) {
      if (!isCancellation(error)) throw error;
      state.ending ??= 'cancel';
    }
    if (state.ending === 'cancel' || state.ending === 'cancel-running') {
      await CancellationScope.nonCancellable(() => this.endPages());
      this.show('cancelled');
      upsertMemo({ [MEMO_SUMMARY]: summaryOf(state, Date.now()) });
      throw new CancelledFailure('The batch was cancelled.');
    }
    const summary = summaryOf(state, Date.now());
    const failure = failureOf(state, summary);
    this.show(failure === null ? 'done' : 'failed');
    await condition(allHandlersFinished);
    if (failure !== null) throw failure;
    return summary;
  }

  /** Grants places and adds up until every page is done, or somebody wants the batch to end. */
  private async grantUntilDone(): Promise<void> {
    const { state } = this;
    for (;;) {
      const { reports, asked } = this;
      this.judge();
      if (state.ending === 'cancel-running') return;
      await this.tellStrangers();
      await this.tellPages();
      this.show(null);
      if (this.isDone()) return;
      if (workflowInfo().continueAsNewSuggested && allHandlersFinished()) {
        await continueAsNew<(next: ContinuedBatch) => Promise<BatchSummary>>({ continued: state });
      }
      const heard = await condition(() => this.reports > reports || this.asked > asked, SILENCE_MS);
      if (!heard) for (const page of Object.values(state.begun)) page.told = '';
    }
  }

  /** Whether the batch goes on. */
  private judge(): void {
    const { state } = this;
    if (state.ending !== null) return;
    if (failuresSoFar(state) > toleratedFailures(state.tolerate, state.items)) state.ending = 'tolerance';
    const { handedOver, total } = progressOf(state, null).pages;
    const allDone = Object.keys(state.begun).length + Object.keys(state.waiting).length === 0;
    if (handedOver < total && allDone && Date.now() - state.lastHandOverAt > HAND_OVER_MS) {
      state.ending = 'not-handed-over';
    }
  }

  private isDone(): boolean {
    const { state } = this;
    const left = Object.keys(state.begun).length + Object.keys(state.waiting).length;
    return left === 0 && (state.ending !== null || state.finishedPages >= state.pages);
  }

  /** Tells each page what has changed for it; one that isn't there any more takes the batch to its end. */
  private async tellPages(): Promise<void> {
    const { state } = this;
    this.allotPlaces();
    const goingOn = Object.values(state.begun);
    const messages: [BatchState['begun'][number], Allotment][] = goingOn.map((page) => [
      page,
      this.allotmentOf(page),
    ]);
    const due = messages.filter(([page, allotment]) => JSON.stringify(allotment) !== page.told);
    for (let from = 0; from < due.length; from += AT_ONCE) {
      await Promise.all(
        due.slice(from, from + AT_ONCE).map(async ([page, allotment]) => {
          page.told = JSON.stringify(allotment);
          if (!(await tell(page.report.workflowId, allotment))) this.lose(page.report.page);
        }),
      );
    }
  }

  private allotPlaces(): void {
    const { state } = this;
    const waiting = Object.values(state.waiting);
    if (state.ending !== null) {
      // Every page is told, those too that have not begun.
      for (const report of waiting) this.begin(report.page, 0);
      return;
    }
    const open = new Map<number, OpenPage>(
      Object.entries(state.begun).map(([number, page]) => [Number(number), page]),
    );
    const mayBegin = ({ after }: { after: number | null }) => after === null || state.awaited.includes(after);
    for (const [number, places] of allot(state.paused ? 0 : state.concurrency, open, waiting, mayBegin)) {
      const begun = state.begun[number];
      if (begun === undefined) this.begin(number, places);
      else begun.allotted = places;
    }
  }

  private begin(number: number, places: number): void {
    const { state } = this;
    const report = state.waiting[number];
    if (report === undefined) return;
    // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- numbered by page
    delete state.waiting[number];
    state.begun[number] = { allotted: places, told: '', report };
    if (report.after !== null && state.awaited.includes(report.after)) {
      state.awaited.splice(state.awaited.indexOf(report.after), 1);
    }
  }

  private allotmentOf({ allotted, report }: BatchState['begun'][number]): Allotment {
    const { state } = this;
    const { failed = 0 } = report.counts.byStatus;
    const failures = Object.values(report.counts.byFailure).reduce((sum, count) => sum + count, failed);
    return {
      places: allotted,
      tolerated: state.tolerate === null ? null : failures,
      mode: modeOf(state.ending),
    };
  }

  /** Somebody has terminated a page, or its history is gone: what it has sent goes on, and what it hasn't is not sent. */
  private lose(page: number): void {
    const lost = this.state.begun[page];
    if (lost === undefined) return;
    takeReport(this.state, { ...lost.report, done: true }, Date.now());
    this.state.ending ??= 'lost-page';
    this.asked += 1;
  }

  /** Pages of an earlier run of this batch, which was terminated: nothing is started by them any more. */
  private async tellStrangers(): Promise<void> {
    for (const workflowId of this.strangers.splice(0)) {
      await tell(workflowId, { places: 0, tolerated: null, mode: 'leave' });
    }
  }

  /** The last word to every page of a cancelled batch, and for a while their last reports. */
  private async endPages(): Promise<void> {
    const waitMs = this.state.ending === 'cancel-running' ? SILENCE_MS : LAST_REPORTS_MS;
    await this.tellPages();
    await condition(() => this.isDone(), waitMs);
    await condition(allHandlersFinished);
  }

  private async startPage(page: BatchPage): Promise<void> {
    const { batchId, run } = this.state;
    const input: PageInput = { batchWorkflowId: workflowInfo().workflowId, batchId, run, page };
    await startChild(BATCH_PAGE_WORKFLOW, {
      workflowId: pageWorkflowId(batchId, run, page.number),
      args: [input],
      workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
      parentClosePolicy: ParentClosePolicy.ABANDON,
      priority: { priorityKey: BATCH_PRIORITY_KEY },
      staticSummary: `Page ${page.number} of a batch: ${page.items.length} items`,
    });
  }

  private change(make: () => void): BatchProgress {
    make();
    this.asked += 1;
    return progressOf(this.state, null);
  }

  private show(ended: BatchProgress['state'] | null): void {
    setCurrentDetails(batchDetails(progressOf(this.state, ended)));
  }
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

function modeOf(ending: Ending | null): Allotment['mode'] {
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

function failureOf(state: BatchState, summary: BatchSummary): ApplicationFailure | null {
  const [type, message] = wordsOf(state, summary);
  if (type === null) return null;
  return ApplicationFailure.create({ type, message, nonRetryable: true, details: [summary] });
}

function wordsOf(state: BatchState, { settled, items }: BatchSummary): [BatchFailureType | null, string] {
  const again = `${settled} of ${items} items have ended. The same batch started again goes on: what has ended is not sent again.`;
  if (state.ending === 'tolerance') {
    return [
      'ToleranceExceeded',
      `${failuresSoFar(state)} items failed, which is beyond the tolerance. ${again}`,
    ];
  }
  if (state.ending === 'not-handed-over') {
    return ['BatchIncomplete', `Not all pages were handed over: the starter has ended before. ${again}`];
  }
  if (settled < items) return ['BatchIncomplete', `A page was ended before its items. ${again}`];
  return [null, ''];
}

/** What lists and filters find it by; a schedule's action can't be told its own batch id. */
function markAsBatch({ batchId }: BatchPlan): void {
  const value = truncate(batchId, MAX_ATTRIBUTE_CHARACTERS);
  upsertSearchAttributes([{ key: defineSearchAttributeKey('FollowUpBatch', 'KEYWORD'), value }]);
}

/** The state that the run before has handed over; null where the input is a caller's, whatever it looks like. */
function continuedState(input: unknown): BatchState | null {
  if (workflowInfo().continuedFromExecutionRunId === undefined) return null;
  return isRecord(input) && 'continued' in input ? (input as unknown as ContinuedBatch).continued : null;
}
