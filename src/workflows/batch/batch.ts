import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  isCancellation,
  makeContinueAsNewFunc,
  setCurrentDetails,
  setHandler,
  sleep,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { countPages, cutPages } from '../../core/batch-pages';
import type { BatchSummary } from '../../core/batch';
import {
  type BatchFailureType,
  type BatchInput,
  type BatchPage,
  type BatchProgress,
  MEMO_PAGES,
  MEMO_SUMMARY,
  type PageReport,
} from '../../core/batch-workflows';
import { isRecord } from '../../core/field-reader';
import { runOf } from '../../core/ids';
import { keyword } from '../keyword';
import { type BatchPlan, checkBatch } from './check-batch';
import { batchDetails, toleratedFailures } from './counts';
import {
  type BatchState,
  type ContinuedBatch,
  failureOf,
  failuresSoFar,
  initialState,
  memoOf,
  progressOf,
  summaryOf,
  takeReport,
} from './state';
import { receiveOperators } from './operator';
import { reportSignal } from './page';
import { closePages, startPage, tellPages, turnAway } from './pages';
import { readReport } from './allotment';

/** How often pages are spoken to that have nothing to hear: it fails where somebody has terminated one. */
const SILENCE_MS = 10 * 60_000;

/** A batch whose pages don't all come within this time after the last one is given up: its starter has died. */
const HAND_OVER_MS = 3_600_000;

/** How long the end of a cancelled batch waits for its pages to tell what they have reached. */
const LAST_REPORTS_MS = 30_000;

/**
 * How long a batch that an update has ended waits for the request to cancel it, which its client sends next: without
 * one, the server would call it failed.
 */
const CANCEL_REQUEST_MS = 5_000;

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
      earlier: plan.earlier,
      again: plan.again,
    }),
  );
  markAsBatch(plan);
  return batch.run(pages);
}

class Batch {
  /** Pages that have reported and don't belong to the batch as it is. */
  private strays: Pick<PageReport, 'run' | 'page'>[] = [];
  /** Reports and changes so far: the batch looks at itself after each. */
  private news = 0;
  private ended: BatchProgress['state'] | null = null;

  constructor(private readonly state: BatchState) {
    setHandler(reportSignal, (value) => {
      const report = readReport(value, state.pages);
      if (report === null) return;
      this.news += 1;
      const { run, page } = report;
      const isOurs = run === state.run && takeReport(state, report, Date.now());
      if (!isOurs) this.strays.push({ run, page });
    });
    receiveOperators(
      state,
      () => progressOf(state, this.ended),
      () => (this.news += 1),
    );
  }

  async run(pages: readonly BatchPage[] = []): Promise<BatchSummary> {
    const { state } = this;
    const whole = CancellationScope.current();
    const looking = new CancellationScope();
    try {
      for (const page of pages) await startPage(state, page);
      // One timer for all the time, and not one for each report: it ends by being cancelled.
      looking.run(() => this.lookAfterPages()).catch(ignoreCancellation);
      await this.grantUntilDone();
    } catch (error) {
      if (!isCancellation(error)) throw error;
      state.ending ??= 'cancel';
    } finally {
      looking.cancel();
    }
    if (state.ending === 'cancel' || state.ending === 'cancel-running') {
      await CancellationScope.nonCancellable(async () => {
        await this.endPages();
        await closePages(state);
        await condition(() => whole.consideredCancelled, CANCEL_REQUEST_MS);
      });
      this.ended = 'cancelled';
      this.show();
      upsertMemo({ [MEMO_SUMMARY]: summaryOf(state, Date.now()) });
      throw new CancelledFailure('The batch was cancelled.');
    }
    await closePages(state);
    const summary = summaryOf(state, Date.now());
    const failure = failureOf(state, summary);
    this.ended = failure === null ? 'done' : 'failed';
    this.show();
    await condition(allHandlersFinished);
    if (failure !== null) throw failure;
    return summary;
  }

  /** Grants places and adds up until every page is done, or somebody wants the batch to end. */
  private async grantUntilDone(): Promise<void> {
    const { state } = this;
    for (;;) {
      const { news } = this;
      this.judge();
      if (state.ending === 'cancel-running') return;
      await this.tell();
      if (this.isDone()) return;
      if (workflowInfo().continueAsNewSuggested && allHandlersFinished()) {
        await continueWith({ continued: state });
      }
      await condition(() => this.news > news);
    }
  }

  private async tell(): Promise<void> {
    await turnAway(this.state, this.strays.splice(0));
    await tellPages(this.state);
    this.show();
  }

  /** Now and then every page is told once more where it stands: who isn't there any more is found missing. */
  private async lookAfterPages(): Promise<void> {
    for (;;) {
      await sleep(SILENCE_MS, { summary: 'look whether the pages are there' });
      for (const page of Object.values(this.state.begun)) page.told = '';
      this.news += 1;
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
    return left === 0 && (state.ending !== null || countPages(state.finishedPages) >= state.pages);
  }

  /** The last word to every page of a cancelled batch, and for a while their last reports. */
  private async endPages(): Promise<void> {
    const waitMs = this.state.ending === 'cancel-running' ? SILENCE_MS : LAST_REPORTS_MS;
    const endAt = Date.now() + waitMs;
    for (;;) {
      const { news } = this;
      await this.tell();
      const leftMs = endAt - Date.now();
      if (this.isDone() || leftMs <= 0) break;
      // Also a page is told that was under way when the batch was cancelled.
      await condition(() => this.news > news, leftMs);
    }
    await condition(allHandlersFinished);
  }

  private show(): void {
    setCurrentDetails(batchDetails(progressOf(this.state, this.ended)));
  }
}

/** The server hands on the memo with which a run was started, and not what the run has changed in it (measured). */
async function continueWith(next: ContinuedBatch): Promise<never> {
  const memo = { ...workflowInfo().memo, [MEMO_PAGES]: memoOf(next.continued) };
  return makeContinueAsNewFunc<(next: ContinuedBatch) => Promise<BatchSummary>>({ memo })(next);
}

function ignoreCancellation(error: unknown): void {
  if (!isCancellation(error)) throw error;
}

/** What lists and filters find it by; a schedule's action can't be told its own batch id. */
function markAsBatch({ batchId }: BatchPlan): void {
  upsertSearchAttributes([keyword('FollowUpBatch', batchId)]);
}

/** The state that the run before has handed over; null where the input is a caller's, whatever it looks like. */
function continuedState(input: unknown): BatchState | null {
  if (workflowInfo().continuedFromExecutionRunId === undefined) return null;
  return isRecord(input) && 'continued' in input ? (input as unknown as ContinuedBatch).continued : null;
}
