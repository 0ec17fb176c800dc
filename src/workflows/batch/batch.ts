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
import { type BatchBoard, EMPTY_BOARD, isBatchBoard, isMaxFailuresExceeded, isIdle } from '../../batch/board';
import { settingProblems } from '../../batch/items';
import {
  type BatchInput,
  batchMemo,
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
  endOf,
  progressOf,
  summaryOf,
} from '../../batch/progress';
import { isRecord, problemTexts } from '../../contract/checks';
import { measure } from '../../contract/metrics';
import { keyword } from '../../contract/follow-up-start';
import { failure } from '../failure';
import { notify } from '../notification';
import { receiveUpdate } from '../receive-update';
import { closeChunks, runItems } from './proxies';
import { checkBatch } from './input';

/** The number of items that one activity may start. An activity costs seven events. */
const ITEMS_PER_ACTIVITY = 200;

/** For how long a cancelled batch waits for its activity, whose worker may have stopped. */
const LAST_REPORT_MS = 40_000;

/** The client requests the cancellation after `cancelRunning`. Without the request, the Temporal server shows the batch as failed. */
const CANCEL_REQUEST_MS = 5_000;

/** The settings of a batch that starts. */
const START = { bound: 0, movingSince: null, rounds: 0, paused: false, ending: null } as const;

/**
 * Sends many follow-ups with limited concurrency. An activity starts them and collects their outcomes. The workflow writes to the
 * memo how far the activity may go, and decides. Its state does not grow with the items.
 *
 * @throws ApplicationFailure `InvalidBatch`, `MaxFailuresExceeded` or `BatchIncomplete`, with the summary as its detail
 */
export async function followUpBatch(input: BatchInput): Promise<BatchSummary> {
  const { workflowId, startTime, continuedFromExecutionRunId, memo, typedSearchAttributes } = workflowInfo();
  // Runs of a cron schedule and of a retry policy also continue a run, and have a caller's input and memo.
  const continued = continuedFromExecutionRunId === undefined ? null : batchMemo(memo);
  if (continued !== null && isRecord(input)) return new Batch(input, continued).run();
  const plan = checkBatch(input, workflowId);
  const { items, chunks, ...given } = plan;
  // The action of a schedule can't set the attribute, because it does not know the batch ID.
  const ofBatch = keyword('FollowUpBatch', plan.batchId);
  if (typedSearchAttributes.get(ofBatch.key) !== ofBatch.value) upsertSearchAttributes([ofBatch]);
  const count = chunks?.items ?? items?.length ?? 0;
  const first = { items: count, startedAt: startTime.toISOString(), ...START };
  return new Batch({ items, chunks }, { ...EMPTY_BOARD, ...given, ...first }).run();
}

/** A chunk. It runs only if its start delay has passed. */
export function followUpBatchItems(): Promise<void> {
  return Promise.resolve();
}

class Batch {
  private readonly whole = CancellationScope.current();
  private endedAt: string | null = null;
  /** The length of the history in the latest workflow task that received an update. */
  private updatedAt = 0;

  constructor(
    private readonly source: BatchSource,
    private memo: BatchMemo,
  ) {
    setHandler(defineQuery<BatchProgress>('progress'), () => this.progress(), {
      description: 'The progress of the batch: counts, running follow-ups, the first failures.',
    });
    const update = (values: Partial<BatchSettings>) => {
      this.updatedAt = workflowInfo().historyLength;
      return this.change(values);
    };
    const offer = (name: BatchUpdate, values: Partial<BatchSettings>, description: string) => {
      receiveUpdate(name, () => update(values), { description });
    };
    offer('pause', { paused: true }, 'Starts no further item until resume; running items continue.');
    offer('resume', { paused: false }, 'Continues after pause.');
    receiveUpdate('setConcurrency', (concurrency: number) => update({ concurrency }), {
      description: 'How many follow-ups may run at the same time, 1 to 1,000. Running follow-ups continue.',
      refusal: (concurrency) => problemTexts(settingProblems(concurrency, null)) || undefined,
    });
    const words = 'Cancels the batch and its running follow-ups. To leave them running, cancel the workflow.';
    offer('cancelRunning', { ending: 'cancel-running' }, words);
    this.whole.cancelRequested.catch(() => {
      const { ending } = this.memo;
      if (ending === null || ending === 'max-failures') this.change({ ending: 'cancelled' });
    });
  }

  readonly run = () => CancellationScope.nonCancellable(() => this.runToEnd());

  private async runToEnd(): Promise<BatchSummary> {
    await this.work();
    const { batchId, digest, items, ended, unknownDeliveries } = this.memo;
    const { chunks } = this.source;
    if (chunks)
      await closeChunks({ batchId, digest, chunks }).catch((error: unknown) => {
        if (!(error instanceof ActivityFailure)) throw error;
        log.warn('the stored items of the batch were not closed', { error: error.cause?.message });
      });
    if (this.memo.ending === 'cancel-running')
      await condition(() => this.whole.consideredCancelled, CANCEL_REQUEST_MS);
    await condition(allHandlersFinished);
    const { state, type, message } = endOf(this.memo);
    const endedAt = (this.endedAt = new Date(Date.now()).toISOString());
    measure(metricMeter, 'batchesEnded', 1, { outcome: type });
    this.write();
    const { workflowId } = workflowInfo();
    const data = { workflowId, batchId, outcome: type, items, ended, unknownDeliveries };
    await notify({ type: 'follow-up-batch.ended', data });
    if (state === 'cancelled') throw new CancelledFailure('The batch was cancelled.');
    const summary = { ...summaryOf(this.memo), endedAt };
    if (message !== null) throw failure(type, message, summary);
    return summary;
  }

  private async work(): Promise<void> {
    for (;;) {
      const { ending, paused, ended, items } = this.memo;
      if (ended >= items || (ending === 'max-failures' && isIdle(this.memo))) return;
      if (ending === 'cancelled' || ending === 'interrupted') return;
      const isLast = ending !== null || this.whole.consideredCancelled;
      const { continueAsNewSuggested, historyLength } = workflowInfo();
      // The Temporal server rejects a task that ends a run if another event arrived for the run, and its update would be lost.
      const isUpdated = historyLength <= this.updatedAt;
      if (continueAsNewSuggested && allHandlersFinished() && !isUpdated && !isLast)
        await this.continueAsNew();
      if (paused && isIdle(this.memo) && ending === null) {
        this.write();
        await condition(() => !this.memo.paused || this.memo.ending !== null);
        continue;
      }
      await this.round();
      if (ending === 'cancel-running') return;
    }
  }

  private async round(): Promise<void> {
    const bound = Math.max(this.memo.cursor + ITEMS_PER_ACTIVITY, this.memo.startedEarlier?.cursor ?? 0);
    const { items, rounds } = this.memo;
    this.change({ bound: Math.min(items, bound), rounds: rounds + 1, movingSince: Date.now() });
    let report: unknown;
    const receive = (end: unknown) => (report = end ?? null);
    void runItems({ chunks: this.source.chunks }).then(receive, receive);
    const hasEnded = () => report !== undefined;
    const isCancelled = () => this.memo.ending === 'cancelled';
    while (!hasEnded()) {
      await condition(() => hasEnded() || isCancelled());
      // The last report is lost if the activity's worker has stopped.
      if (!(await condition(() => hasEnded() || !isCancelled(), LAST_REPORT_MS))) return;
    }
    if (report instanceof Error && !(report instanceof ActivityFailure)) throw report;
    if (isBatchBoard(report)) this.take(report);
    // It is unknown which items the activity started: the next run of the batch checks them.
    else if (!isCancelled()) this.memo = { ...this.memo, ending: 'interrupted' };
  }

  private take(board: BatchBoard): void {
    const before = { ...this.memo.byStatus, ...this.memo.byFailure };
    for (const [outcome, times] of Object.entries({ ...board.byStatus, ...board.byFailure }))
      measure(metricMeter, 'batchItemsEnded', times - (before[outcome] ?? 0), { outcome });
    this.memo = { ...this.memo, ...board, movingSince: null };
    if (this.memo.ending === null && isMaxFailuresExceeded(this.memo, board))
      this.memo = { ...this.memo, ending: 'max-failures' };
  }

  private async continueAsNew(): Promise<void> {
    // The Temporal server passes on the memo from the start of a run, without the run's own changes (measured).
    const { typedSearchAttributes, memo: first } = workflowInfo();
    const memo = { ...first, [MEMO_BATCH]: this.memo };
    const next = makeContinueAsNewFunc<typeof followUpBatch>({ memo, typedSearchAttributes });
    await next(this.source);
  }

  /** Writes the memo, which the activity, a further run and clients read. */
  private write(): void {
    upsertMemo({ [MEMO_BATCH]: this.memo });
    setCurrentDetails(batchDetails(this.progress(), Date.now()));
  }

  private progress(): BatchProgress {
    return progressOf(this.memo, this.endedAt === null ? 'running' : 'completed', this.endedAt);
  }

  /** A batch that has ended keeps its outcome: a batch whose items have all ended can't be cancelled. */
  private change(values: Partial<BatchSettings>): BatchProgress {
    const isDone = this.memo.ended >= this.memo.items;
    if (this.endedAt === null && !(isDone && values.ending !== undefined)) {
      this.memo = { ...this.memo, ...values };
      this.write();
    }
    return this.progress();
  }
}
