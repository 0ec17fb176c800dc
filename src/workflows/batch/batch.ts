import {
  ActivityFailure,
  allHandlersFinished,
  CancellationScope,
  CancelledFailure,
  condition,
  defineQuery,
  log,
  makeContinueAsNewFunc,
  metricMeter,
  setCurrentDetails,
  setHandler,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import {
  type BatchBoard,
  EMPTY_BOARD,
  isBatchBoard,
  isMaxFailuresExceeded,
  isEveryLanePending,
} from '../../batch/board';
import { settingProblems } from '../../batch/items';
import {
  type BatchInput,
  readBatchMemo,
  type BatchMemo,
  type BatchSettings,
  type BatchSource,
  type BatchUpdate,
  MEMO_BATCH,
} from '../../batch/memo';
import {
  batchDetails,
  type BatchProgress,
  type BatchSummary,
  toBatchOutcome,
  toBatchProgress,
  toSummaryFields,
} from '../../batch/progress';
import { isRecord, problemTexts } from '../../contract/checks';
import { recordMetric } from '../../contract/metrics';
import { keywordAttribute } from '../../contract/follow-up-start-options';
import { nonRetryableError } from '../non-retryable-error';
import { notify } from '../notification';
import { registerUpdate } from '../register-update';
import { closeChunks, runItems } from './proxies';
import { checkBatchInput } from './input';

/**
 * An activity may start the remaining items of the lanes, and items up to this number after the cursor. If a lane goes beyond
 * the start limit, the next activity starts the lane's further items. An activity adds seven events to the history.
 */
const ITEMS_PER_ACTIVITY = 200;

/**
 * The maximum time for which a cancelled batch waits for the activity's last report, because the activity's worker may have
 * stopped.
 */
const LAST_REPORT_MS = 40_000;

/**
 * The maximum wait for the request to cancel the workflow, which the client sends after `cancelRunning`. Without this request,
 * the Temporal server shows the batch as failed.
 */
const CANCEL_REQUEST_MS = 5_000;

/** The settings of a batch that starts. */
const INITIAL_SETTINGS = {
  startLimit: 0,
  activityStartedAt: null,
  activityCount: 0,
  isPaused: false,
  stopReason: null,
} as const;

/**
 * Sends many follow-ups with limited concurrency. An activity starts the follow-ups and collects their outcomes. The workflow
 * writes to the memo which items the activity may start, and decides whether the batch continues. The workflow's state does not
 * grow with the number of items.
 *
 * @throws ApplicationFailure `InvalidBatch`, or `MaxFailuresExceeded` or `BatchIncomplete` with the summary as the first detail
 */
export async function followUpBatch(input: BatchInput): Promise<BatchSummary> {
  const { workflowId, startTime, continuedFromExecutionRunId, memo, typedSearchAttributes } = workflowInfo();
  // Runs of a cron schedule or a retry policy continue a run too, but they have a caller's input and memo.
  const continued = continuedFromExecutionRunId === undefined ? null : readBatchMemo(memo);
  if (continued !== null && isRecord(input)) return new Batch(input, continued).run();
  const plan = checkBatchInput(input, workflowId);
  const { items, chunks, ...settings } = plan;
  // A schedule can't set this attribute, because the schedule's action does not know the batch ID.
  const batchAttribute = keywordAttribute('FollowUpBatch', plan.batchId);
  if (typedSearchAttributes.get(batchAttribute.key) !== batchAttribute.value)
    upsertSearchAttributes([batchAttribute]);
  const count = chunks?.items ?? items?.length ?? 0;
  const first = { items: count, startedAt: startTime.toISOString(), ...INITIAL_SETTINGS };
  return new Batch({ items, chunks }, { ...EMPTY_BOARD, ...settings, ...first }).run();
}

/** A chunk of a large batch's items. The workflow runs only if its start delay has passed, and then it ends at once. */
export function followUpBatchItems(): Promise<void> {
  return Promise.resolve();
}

class Batch {
  private readonly workflowScope = CancellationScope.current();
  private endedAt: string | null = null;
  /** The length of the history in the latest workflow task that received an update. */
  private updatedAtHistoryLength = 0;

  constructor(
    private readonly source: BatchSource,
    private memo: BatchMemo,
  ) {
    setHandler(defineQuery<BatchProgress>('progress'), () => this.progress(), {
      description: 'Returns the counts, the number of running follow-ups and the first failures.',
    });
    const update = (values: Partial<BatchSettings>) => {
      this.updatedAtHistoryLength = workflowInfo().historyLength;
      return this.changeSettings(values);
    };
    const registerSettingsUpdate = (
      name: BatchUpdate,
      values: Partial<BatchSettings>,
      description: string,
    ) => {
      registerUpdate(name, () => update(values), { description });
    };
    registerSettingsUpdate(
      'pause',
      { isPaused: true },
      'Starts no further items until resume. Running items continue.',
    );
    registerSettingsUpdate(
      'resume',
      { isPaused: false },
      'Ends the pause. The batch then starts its next items.',
    );
    registerUpdate('setConcurrency', (concurrency: number) => update({ concurrency }), {
      description:
        'Sets the number of follow-ups that may run at the same time, from 1 to 1,000. Running follow-ups continue.',
      findProblem: (concurrency) => problemTexts(settingProblems(concurrency, null)) || undefined,
    });
    const description =
      'Cancels the batch and its running follow-ups. To leave the follow-ups running, cancel the workflow instead.';
    registerSettingsUpdate('cancelRunning', { stopReason: 'cancel-running' }, description);
    this.workflowScope.cancelRequested.catch(() => {
      const { stopReason } = this.memo;
      if (stopReason === null || stopReason === 'max-failures')
        this.changeSettings({ stopReason: 'cancelled' });
    });
  }

  readonly run = () => CancellationScope.nonCancellable(() => this.runToCompletion());

  private async runToCompletion(): Promise<BatchSummary> {
    await this.runActivities();
    const { batchId, digest, items, ended, unknownDeliveries } = this.memo;
    const { chunks } = this.source;
    if (chunks)
      await closeChunks({ batchId, digest, chunks }).catch((error: unknown) => {
        if (!(error instanceof ActivityFailure)) throw error;
        log.warn('the chunks of the batch could not be terminated', { error: error.cause?.message });
      });
    if (this.memo.stopReason === 'cancel-running')
      await condition(() => this.workflowScope.consideredCancelled, CANCEL_REQUEST_MS);
    await condition(allHandlersFinished);
    const { state, type, message } = toBatchOutcome(this.memo);
    const endedAt = (this.endedAt = new Date(Date.now()).toISOString());
    recordMetric(metricMeter, 'batchesEnded', 1, { outcome: type });
    this.writeMemo();
    const { workflowId, runId } = workflowInfo();
    const cancelled = state === 'cancelled' ? 'The batch was cancelled.' : null;
    const counts = { items, ended, unknownDeliveries };
    const data = { workflowId, runId, batchId, outcome: state, message: message ?? cancelled, ...counts };
    await notify({ type: 'follow-up-batch.ended', data });
    if (cancelled !== null) throw new CancelledFailure(cancelled);
    const summary = { ...toSummaryFields(this.memo), endedAt };
    if (message !== null) throw nonRetryableError(type, message, summary);
    return summary;
  }

  private async runActivities(): Promise<void> {
    for (;;) {
      const { stopReason, isPaused, ended, items } = this.memo;
      if (ended >= items || (stopReason === 'max-failures' && isEveryLanePending(this.memo))) return;
      if (stopReason === 'cancelled' || stopReason === 'interrupted') return;
      const isLast = stopReason !== null || this.workflowScope.consideredCancelled;
      const { continueAsNewSuggested, historyLength } = workflowInfo();
      // If another event has arrived, the Temporal server rejects a task that ends a run, and an update in that task would be
      // lost.
      const isUpdated = historyLength <= this.updatedAtHistoryLength;
      if (continueAsNewSuggested && allHandlersFinished() && !isUpdated && !isLast)
        await this.continueAsNew();
      if (isPaused && isEveryLanePending(this.memo) && stopReason === null) {
        this.writeMemo();
        await condition(() => !this.memo.isPaused || this.memo.stopReason !== null);
        continue;
      }
      await this.runActivity();
      if (stopReason === 'cancel-running') return;
    }
  }

  private async runActivity(): Promise<void> {
    const startLimit = Math.max(this.memo.cursor + ITEMS_PER_ACTIVITY, this.memo.startedEarlier?.cursor ?? 0);
    const { items, activityCount } = this.memo;
    this.changeSettings({
      startLimit: Math.min(items, startLimit),
      activityCount: activityCount + 1,
      activityStartedAt: Date.now(),
    });
    let report: unknown;
    const receive = (end: unknown) => (report = end ?? null);
    void runItems({ chunks: this.source.chunks }).then(receive, receive);
    const hasEnded = () => report !== undefined;
    const isCancelled = () => this.memo.stopReason === 'cancelled';
    while (!hasEnded()) {
      await condition(() => hasEnded() || isCancelled());
      // The wait has a limit, because the last report is lost if the activity's worker has stopped.
      if (!(await condition(() => hasEnded() || !isCancelled(), LAST_REPORT_MS))) return;
    }
    if (report instanceof Error && !(report instanceof ActivityFailure)) throw report;
    if (isBatchBoard(report)) this.applyBoard(report);
    // Without a report, it is unknown which items the activity started. The next run of the batch checks these items.
    else if (!isCancelled()) this.memo = { ...this.memo, stopReason: 'interrupted' };
  }

  private applyBoard(board: BatchBoard): void {
    const before = { ...this.memo.byStatus, ...this.memo.byFailure };
    for (const [outcome, times] of Object.entries({ ...board.byStatus, ...board.byFailure }))
      recordMetric(metricMeter, 'batchItemsEnded', times - (before[outcome] ?? 0), { outcome });
    this.memo = { ...this.memo, ...board, activityStartedAt: null };
    if (this.memo.stopReason === null && isMaxFailuresExceeded(this.memo, board))
      this.memo = { ...this.memo, stopReason: 'max-failures' };
  }

  private async continueAsNew(): Promise<void> {
    // The new run needs the current memo, because the Temporal server passes on only the memo from the start of this run
    // (Temporal server 1.32.0).
    const { typedSearchAttributes, memo: first } = workflowInfo();
    const memo = { ...first, [MEMO_BATCH]: this.memo };
    const next = makeContinueAsNewFunc<typeof followUpBatch>({ memo, typedSearchAttributes });
    await next(this.source);
  }

  /** Writes the memo, which the activity, the next run and clients read. */
  private writeMemo(): void {
    upsertMemo({ [MEMO_BATCH]: this.memo });
    setCurrentDetails(batchDetails(this.progress(), Date.now()));
  }

  private progress(): BatchProgress {
    return toBatchProgress(this.memo, this.endedAt === null ? 'running' : 'completed', this.endedAt);
  }

  /** Changes settings and returns the progress. If all items have ended, the batch keeps its outcome and can't be cancelled. */
  private changeSettings(values: Partial<BatchSettings>): BatchProgress {
    const isDone = this.memo.ended >= this.memo.items;
    if (this.endedAt === null && !(isDone && values.stopReason !== undefined)) {
      this.memo = { ...this.memo, ...values };
      this.writeMemo();
    }
    return this.progress();
  }
}
