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
import { countPages, cutPages, pagesIn } from '../../core/batch-pages';
import type { BatchSummary } from '../../core/batch';
import {
  type BatchFailureType,
  type BatchInput,
  type BatchPage,
  type BatchProgress,
  MEMO_PAGES,
  MEMO_SUMMARY,
} from '../../core/batch-workflows';
import { isRecord } from '../../core/json';
import { isPageReport } from '../../core/wire-checks';
import { runOf } from '../../core/ids';
import { settingsProxy } from '../activity-proxies';
import { keyword } from '../keyword';
import { reserved } from './allotment';
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
import { ignoreCancellation } from './find-items';
import { reportSignal } from './page';
import { closePages, lookForPages, notifyPages, startPages } from './pages';

/**
 * How often each page gets a signal even if nothing has changed, which fails if the page was terminated: at every third of
 * the looks that a page takes, which is every nine minutes.
 */
const LOOKS_PER_PING = 3;

/**
 * A batch is given up after so many pings in a row, which is an hour, if nothing goes on and no further page comes: its
 * starter has died. Pings, and not the clock, because without a worker no page can come.
 */
const QUIET_PINGS = 7;

/** How long a cancelled batch waits for the last reports of its pages, and for the ends of what it cancels. */
const LAST_REPORTS_MS = 30_000;
const LAST_ENDS_MS = 10 * 60_000;

/**
 * How long a batch that an update has ended waits for the cancellation request, which its client sends next. Without
 * that request the server would show the batch as failed.
 */
const CANCEL_REQUEST_MS = 5_000;

/**
 * Sends many follow-ups with limited concurrency, and counts how they end. Each item is a `followUp` workflow of its own.
 * Pages, which are `followUpBatchPage` workflows, run the items; this workflow only grants places and counts. It may
 * continue as new at any time, because its pages report to its workflow id.
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
      hasItems: plan.items !== undefined,
      earlier: plan.earlier,
      again: plan.again,
    }),
  );
  markAsBatch(plan);
  return batch.run(pages);
}

class Batch {
  /** Counts reports and operators' changes: the batch acts after each. */
  private changes = 0;
  private ended: BatchProgress['state'] | null = null;

  constructor(private readonly state: BatchState) {
    setHandler(reportSignal, (report: unknown) => {
      // A page of an earlier run closes when it has found out that its batch has ended.
      if (!isPageReport(report) || report.run !== state.run) return;
      this.changes += 1;
      takeReport(state, report);
    });
    receiveOperators(
      state,
      () => progressOf(state, this.ended),
      () => (this.changes += 1),
    );
  }

  async run(pages: readonly BatchPage[] = []): Promise<BatchSummary> {
    const { state } = this;
    const whole = CancellationScope.current();
    const looking = new CancellationScope();
    try {
      await startPages(state, pages);
      // One timer for the whole batch instead of one for each report. It ends when it is cancelled.
      looking.run(() => this.pingPages()).catch(ignoreCancellation);
      await this.grantUntilDone();
    } catch (error) {
      if (!isCancellation(error)) throw error;
      // Also one that was ending: it does not wait for its open follow-ups any more.
      if (state.ending !== 'cancel-running') state.ending = 'cancel';
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
    const summary = summaryOf(state, Date.now());
    const failure = failureOf(state, summary);
    this.ended = failure === null ? 'done' : 'failed';
    // A cancellation comes too late.
    await CancellationScope.nonCancellable(async () => {
      await closePages(state);
      this.show();
      await condition(allHandlersFinished);
    });
    if (failure !== null) throw failure;
    return summary;
  }

  /** Grants places and counts until every page is done, or somebody ends the batch. */
  private async grantUntilDone(): Promise<void> {
    const { state } = this;
    for (;;) {
      const { changes } = this;
      this.decideEnding();
      if (state.ending === 'cancel-running') return;
      await notifyPages(state);
      this.show();
      if (this.isDone()) return;
      if (workflowInfo().continueAsNewSuggested && allHandlersFinished()) {
        await continueWith({ continued: state });
      }
      await condition(() => this.changes > changes);
    }
  }

  /** Sends every page its allotment again now and then, which shows pages that no longer exist. */
  private async pingPages(): Promise<void> {
    const { state } = this;
    const { lookEveryMs } = await settingsProxy.workerSettings();
    for (;;) {
      await sleep(LOOKS_PER_PING * lookEveryMs, { summary: 'look whether the pages are there' });
      state.quietLooks = this.waitsForHandOver() ? state.quietLooks + 1 : 0;
      for (const page of Object.values(state.begun)) page.lastSent = '';
      if (state.hasItems) await lookForPages(state, [...pagesIn([[1, state.pages]])]);
      this.changes += 1;
    }
  }

  /** Whether pages are missing, and nothing goes on without them. */
  private waitsForHandOver(): boolean {
    const { state } = this;
    const { handedOver, total } = progressOf(state, null).pages;
    const goesOn = Object.values(state.begun).some((page) => reserved(page) > 0);
    return !state.hasItems && handedOver < total && !goesOn;
  }

  /** Decides whether the batch must end early. */
  private decideEnding(): void {
    const { state } = this;
    if (state.ending !== null) return;
    if (failuresSoFar(state) > toleratedFailures(state.tolerate, state.items)) state.ending = 'tolerance';
    else if (state.quietLooks >= QUIET_PINGS) state.ending = 'not-handed-over';
  }

  private isDone(): boolean {
    const { state } = this;
    if (Object.keys(state.begun).length > 0) return false;
    return state.ending !== null || countPages(state.finishedPages) >= state.pages;
  }

  /** Ends the pages of a cancelled batch, and waits a while for their last reports. */
  private async endPages(): Promise<void> {
    const waitMs = this.state.ending === 'cancel-running' ? LAST_ENDS_MS : LAST_REPORTS_MS;
    const endAt = Date.now() + waitMs;
    for (;;) {
      const { changes } = this;
      await notifyPages(this.state);
      this.show();
      const leftMs = endAt - Date.now();
      if (this.isDone() || leftMs <= 0) break;
      // A page that arrived while the batch was being cancelled is notified too.
      await condition(() => this.changes > changes, leftMs);
    }
    await condition(allHandlersFinished);
  }

  private show(): void {
    setCurrentDetails(batchDetails(progressOf(this.state, this.ended)));
  }
}

/** The server hands on the memo from the start of a run, without the run's own changes to it (measured). */
async function continueWith(next: ContinuedBatch): Promise<never> {
  const memo = { ...workflowInfo().memo, [MEMO_PAGES]: memoOf(next.continued) };
  return makeContinueAsNewFunc<(next: ContinuedBatch) => Promise<BatchSummary>>({ memo })(next);
}

/** Lists and filters find the batch by this attribute. A schedule's action can't set it: it does not know the batch id. */
function markAsBatch({ batchId }: BatchPlan): void {
  upsertSearchAttributes([keyword('FollowUpBatch', batchId)]);
}

/** The state from the run before; null for the input of a caller, even if it looks like a state. */
function continuedState(input: unknown): BatchState | null {
  if (workflowInfo().continuedFromExecutionRunId === undefined) return null;
  return isRecord(input) && 'continued' in input ? (input as unknown as ContinuedBatch).continued : null;
}
