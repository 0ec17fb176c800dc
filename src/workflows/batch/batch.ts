import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  defineQuery,
  defineUpdate,
  isCancellation,
  makeContinueAsNewFunc,
  metricMeter,
  setCurrentDetails,
  setHandler,
  sleep,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { type BatchSummary, settingProblems } from '../../core/batch/batch';
import { countPages, cutPages, pagesIn } from '../../core/batch/pages';
import {
  type BatchInput,
  type BatchPage,
  type BatchProgress,
  isPageReport,
  MEMO_PAGES,
  MEMO_SUMMARY,
  QUERY_BATCH_PROGRESS,
  UPDATE_CANCEL_RUNNING,
  UPDATE_PAUSE,
  UPDATE_RESUME,
  UPDATE_SET_CONCURRENCY,
} from '../../core/batch/workflows';
import { runOf } from '../../core/ids';
import { isRecord, problemTexts } from '../../core/checks';
import { measure } from '../../core/metrics';
import { keyword } from '../../core/starts';
import { workerSettings } from '../activity-proxies';
import { checkBatch } from './check-batch';
import { batchDetails, failuresOf, toleratedFailures } from './counts';
import { ignoreCancellation } from './items';
import { reportSignal } from './page';
import { closePages, lookForPages, notifyPages, startPages } from './pages';
import {
  type BatchState,
  batchFailure,
  begunPages,
  countsOf,
  initialState,
  knownPages,
  memoOf,
  progressOf,
  summaryOf,
  reserved,
  takeReport,
  whyIncomplete,
} from './state';

/** What a run that continues as new hands to the next one. */
interface ContinuedBatch {
  readonly continued: BatchState;
}

/** Every third look (nine minutes) each page gets a signal even if nothing has changed: it fails for a terminated page. */
const LOOKS_PER_PING = 3;

/**
 * A batch is given up after so many pings in a row (an hour) at which nothing went on and no further page came: its starter
 * has died. Pings, and not the clock, because without a worker no page can come.
 */
const QUIET_PINGS = 7;

/** How long a cancelled batch waits for the last reports of its pages, and for the ends of what it cancels. */
const LAST_REPORTS_MS = 30_000;
const LAST_ENDS_MS = 10 * 60_000;

/** How long the request that follows `cancelRunning` is waited for: without it the server would show the batch as failed. */
const CANCEL_REQUEST_MS = 5_000;

/**
 * Sends many follow-ups with limited concurrency, and counts how they end. Its pages, `followUpBatchPage` workflows, run the
 * items; it grants places to them and counts. It may continue as new, because they report to its workflow id.
 *
 * @returns the summary, never the items themselves
 * @throws ApplicationFailure `InvalidBatch`, `ToleranceExceeded` or `BatchIncomplete`, with the summary as its detail
 */
export async function followUpBatch(input: BatchInput | ContinuedBatch): Promise<BatchSummary> {
  const { workflowId, firstExecutionRunId, startTime, continuedFromExecutionRunId } = workflowInfo();
  // A cron schedule and a retry policy make runs too, with the input of a caller.
  if (continuedFromExecutionRunId !== undefined && isContinued(input))
    return new Batch(input.continued).run();
  const { items, handedOver, ...settings } = checkBatch(input, workflowId.replace(/^follow-up-batch:/, ''));
  const pages = [...cutPages(items ?? [])];
  const batch = new Batch(
    initialState({
      ...settings,
      run: runOf(firstExecutionRunId),
      startedAt: startTime.getTime(),
      items: handedOver?.items ?? items?.length ?? 0,
      pages: handedOver?.pages ?? pages.length,
      hasItems: items !== undefined,
    }),
  );
  // Lists and filters find the batch by it. The action of a schedule can't set it: it does not know the batch id.
  upsertSearchAttributes([keyword('FollowUpBatch', settings.batchId)]);
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
    this.receiveOperators();
  }

  async run(pages: readonly BatchPage[] = []): Promise<BatchSummary> {
    const { state } = this;
    const whole = CancellationScope.current();
    const looking = new CancellationScope();
    try {
      await startPages(state, pages);
      // One timer for the whole batch instead of one for each report.
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
      measure(metricMeter, 'batchEnds', 1, { outcome: 'cancelled' });
      upsertMemo({ [MEMO_SUMMARY]: summaryOf(state) });
      throw new CancelledFailure('The batch was cancelled.');
    }
    const summary = summaryOf(state);
    const why = whyIncomplete(state);
    this.ended = why === null ? 'done' : 'failed';
    measure(metricMeter, 'batchEnds', 1, { outcome: why?.type ?? 'done' });
    // A cancellation comes too late.
    await CancellationScope.nonCancellable(async () => {
      await closePages(state);
      this.show();
      await condition(allHandlersFinished);
    });
    if (why !== null) throw batchFailure(why.type, why.message, summary);
    return summary;
  }

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
        // The server hands on the memo from the start of a run, without the run's own changes to it (measured).
        const memo = { ...workflowInfo().memo, [MEMO_PAGES]: memoOf(state) };
        await makeContinueAsNewFunc<typeof followUpBatch>({ memo })({ continued: state });
      }
      await condition(() => this.changes > changes);
    }
  }

  private async pingPages(): Promise<void> {
    const { state } = this;
    const { lookEveryMs } = await workerSettings();
    for (;;) {
      await sleep(LOOKS_PER_PING * lookEveryMs, { summary: 'look whether the pages are there' });
      state.quietLooks = this.waitsForHandOver() ? state.quietLooks + 1 : 0;
      for (const [, page] of knownPages(state)) page.lastSent = '';
      if (state.hasItems) await lookForPages(state, [...pagesIn([[1, state.pages]])]);
      this.changes += 1;
    }
  }

  /** Whether pages are missing, and nothing goes on without them. */
  private waitsForHandOver(): boolean {
    const { state } = this;
    const { handedOver, total } = progressOf(state, null).pages;
    const goesOn = knownPages(state).some(([, page]) => reserved(page) > 0);
    return !state.hasItems && handedOver < total && !goesOn;
  }

  private decideEnding(): void {
    const { state } = this;
    if (state.ending !== null) return;
    const failures = failuresOf(countsOf(state));
    if (failures > toleratedFailures(state.tolerate, state.items)) state.ending = 'tolerance';
    else if (state.quietLooks >= QUIET_PINGS) state.ending = 'not-handed-over';
  }

  private isDone(): boolean {
    const { state } = this;
    if (begunPages(state).length > 0) return false;
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

  /** The query and the updates of a batch. Each update returns the progress after it. */
  private receiveOperators(): void {
    const { state } = this;
    const change = (values: Partial<BatchState>): BatchProgress => {
      Object.assign(state, values);
      this.changes += 1;
      return progressOf(state, this.ended);
    };
    setHandler(defineQuery<BatchProgress>(QUERY_BATCH_PROGRESS), () => progressOf(state, this.ended), {
      description: 'Where the batch stands: counts, open follow-ups, pages, the first failures.',
    });
    const offer = (name: string, values: Partial<BatchState>, description: string) => {
      setHandler(defineUpdate<BatchProgress>(name), () => change(values), { description });
    };
    offer(UPDATE_PAUSE, { paused: true }, 'Starts no further item until resume; open ones continue.');
    offer(UPDATE_RESUME, { paused: false }, 'Continues after pause.');
    setHandler(
      defineUpdate<BatchProgress, [concurrency: number]>(UPDATE_SET_CONCURRENCY),
      (concurrency) => change({ concurrency }),
      {
        description: 'How many follow-ups may be open at a time, 1 to 1,000. Those open beyond it continue.',
        validator: (concurrency) => {
          const problems = settingProblems(concurrency, null);
          if (problems.length > 0)
            throw ApplicationFailure.nonRetryable(problemTexts(problems), 'InvalidUpdate');
        },
      },
    );
    const words = 'Cancels the batch and its open follow-ups. To leave them running, cancel the workflow.';
    offer(UPDATE_CANCEL_RUNNING, { ending: 'cancel-running' }, words);
  }
}

function isContinued(input: unknown): input is ContinuedBatch {
  const state = isRecord(input) && isRecord(input.continued) ? input.continued : {};
  return typeof state.batchId === 'string' && isRecord(state.known);
}
