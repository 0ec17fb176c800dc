import {
  ActivityFailure,
  allHandlersFinished,
  CancellationScope,
  CancelledFailure,
  condition,
  defineQuery,
  makeContinueAsNewFunc,
  metricMeter,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { settingProblems } from '../../core/batch/items';
import {
  type BatchActivities,
  type BatchInput,
  batchMemo,
  type BatchMemo,
  type BatchSettings,
  type BatchSource,
  type BatchUpdate,
  isBeyondTolerance,
  isIdle,
  isPosition,
  MEMO_BATCH,
  type Position,
  START,
} from '../../core/batch/state';
import {
  batchDetails,
  type BatchProgress,
  type BatchSummary,
  endOf,
  progressOf,
  summaryOf,
} from '../../core/batch/progress';
import { isRecord, problemTexts } from '../../core/checks';
import { measure } from '../../core/metrics';
import { keyword } from '../../core/starts';
import { failure } from '../failure';
import { notify } from '../notice';
import { receiveUpdate } from '../updates';
import { checkBatch } from './input';

/** Items that may be begun in a round, which costs seven events. */
const ROUND_ITEMS = 200;

/** How long a cancelled batch waits for its activity, whose worker may be dead. */
const LAST_WORD_MS = 40_000;

/** For the request that follows `cancelRunning`: without it the server would show the batch as failed. */
const CANCEL_REQUEST_MS = 5_000;

/**
 * They ask the Temporal server only, so they are on the queue of workflow tasks. There is no schedule-to-close: a batch lasts
 * as long as its items. An attempt asks for its next one with an interval of its own; without one its worker was lost, which
 * is noticed in half a minute: longer than a permission to start.
 */
const { runItems, closeChunks } = proxyActivities<BatchActivities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '30 seconds',
  retry: {
    initialInterval: 5_000,
    backoffCoefficient: 1,
    maximumInterval: '5 minutes',
    nonRetryableErrorTypes: ['ItemsGoneError'],
  },
});

/**
 * Sends many follow-ups with limited concurrency. An activity starts them and looks how they end; the workflow writes down how
 * far it may go, and decides. It holds nothing that grows with them.
 *
 * @throws ApplicationFailure `InvalidBatch`, `ToleranceExceeded` or `BatchIncomplete`, with the summary as its detail
 */
export async function followUpBatch(input: BatchInput): Promise<BatchSummary> {
  const { workflowId, startTime, continuedFromExecutionRunId, memo, typedSearchAttributes } = workflowInfo();
  // A cron schedule and a retry policy make runs too, with the input and the memo of a caller.
  const continued = continuedFromExecutionRunId === undefined ? null : batchMemo(memo);
  if (continued !== null && isRecord(input)) return new Batch(input, continued).run();
  const plan = checkBatch(input, workflowId);
  const { items, chunks, ...given } = plan;
  // The action of a schedule can't set it: it does not know the batch id.
  const ofBatch = keyword('FollowUpBatch', plan.batchId);
  if (typedSearchAttributes.get(ofBatch.key) !== ofBatch.value) upsertSearchAttributes([ofBatch]);
  const count = chunks?.items ?? items?.length ?? 0;
  const first = { items: count, startedAt: startTime.toISOString(), paused: false, ending: null, rounds: 0 };
  return new Batch({ items, chunks }, { ...START, ...given, ...first }).run();
}

/** It runs only where its start delay is over. */
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
      description: 'Where the batch stands: counts, open follow-ups, the first failures.',
    });
    const update = (values: Partial<BatchSettings>) => {
      this.updatedAt = workflowInfo().historyLength;
      return this.change(values);
    };
    const offer = (name: BatchUpdate, values: Partial<BatchSettings>, description: string) => {
      receiveUpdate(name, () => update(values), { description });
    };
    offer('pause', { paused: true }, 'Starts no further item until resume; open ones continue.');
    offer('resume', { paused: false }, 'Continues after pause.');
    receiveUpdate('setConcurrency', (concurrency: number) => update({ concurrency }), {
      description: 'How many follow-ups may be open at a time, 1 to 1,000. Those open beyond it continue.',
      refusal: (concurrency) => problemTexts(settingProblems(concurrency, null)) || undefined,
    });
    const words = 'Cancels the batch and its open follow-ups. To leave them running, cancel the workflow.';
    offer('cancelRunning', { ending: 'cancel-running' }, words);
    this.whole.cancelRequested.catch(() => {
      const { ending } = this.memo;
      if (ending === null || ending === 'tolerance') this.change({ ending: 'cancelled' });
    });
  }

  readonly run = () => CancellationScope.nonCancellable(() => this.toItsEnd());

  private async toItsEnd(): Promise<BatchSummary> {
    await this.work();
    const { batchId, digest, items, settled, unknownDeliveries } = this.memo;
    const { chunks } = this.source;
    if (chunks) await closeChunks({ batchId, digest, chunks });
    if (this.memo.ending === 'cancel-running')
      await condition(() => this.whole.consideredCancelled, CANCEL_REQUEST_MS);
    await condition(allHandlersFinished);
    const { state, type, message } = endOf(this.memo);
    const endedAt = (this.endedAt = new Date(Date.now()).toISOString());
    measure(metricMeter, 'batchEnds', 1, { outcome: type });
    this.write();
    const { workflowId } = workflowInfo();
    const data = { workflowId, batchId, outcome: type, items, settled, unknownDeliveries };
    await notify({ type: 'follow-up-batch.ended', data });
    if (state === 'cancelled') throw new CancelledFailure('The batch was cancelled.');
    const summary = { ...summaryOf(this.memo), endedAt };
    if (message !== null) throw failure(type, message, summary);
    return summary;
  }

  private async work(): Promise<void> {
    for (;;) {
      const { ending, paused, settled, items } = this.memo;
      if (settled >= items || (ending === 'tolerance' && isIdle(this.memo))) return;
      if (ending === 'cancelled' || ending === 'broken-off') return;
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
    const bound = Math.max(this.memo.cursor + ROUND_ITEMS, this.memo.begun?.cursor ?? 0);
    const { items, rounds } = this.memo;
    this.change({ bound: Math.min(items, bound), rounds: rounds + 1, movingSince: Date.now() });
    let answer: unknown;
    const hear = (end: unknown) => (answer = end ?? null);
    void runItems({ chunks: this.source.chunks }).then(hear, hear);
    const hasEnded = () => answer !== undefined;
    const isCancelled = () => this.memo.ending === 'cancelled';
    while (!hasEnded()) {
      await condition(() => hasEnded() || isCancelled());
      // Its last word; it is lost where the activity's worker is dead.
      if (!(await condition(() => hasEnded() || !isCancelled(), LAST_WORD_MS))) return;
    }
    if (answer instanceof Error && !(answer instanceof ActivityFailure)) throw answer;
    if (isPosition(answer)) this.take(answer);
    // Nobody knows what it has begun: the next run of the batch asks.
    else if (!isCancelled()) this.memo = { ...this.memo, ending: 'broken-off' };
  }

  private take(position: Position): void {
    const before = { ...this.memo.byStatus, ...this.memo.byFailure };
    for (const [outcome, times] of Object.entries({ ...position.byStatus, ...position.byFailure }))
      measure(metricMeter, 'batchItems', times - (before[outcome] ?? 0), { outcome });
    this.memo = { ...this.memo, ...position, movingSince: null };
    if (this.memo.ending === null && isBeyondTolerance(this.memo, position))
      this.memo = { ...this.memo, ending: 'tolerance' };
  }

  private async continueAsNew(): Promise<void> {
    // The server hands on the memo from the start of a run, without the run's own changes to it (measured).
    const { typedSearchAttributes, memo: first } = workflowInfo();
    const memo = { ...first, [MEMO_BATCH]: this.memo };
    const next = makeContinueAsNewFunc<typeof followUpBatch>({ memo, typedSearchAttributes });
    await next(this.source);
  }

  /** What the activity, a further run and everybody without a worker know. */
  private write(): void {
    upsertMemo({ [MEMO_BATCH]: this.memo });
    setCurrentDetails(batchDetails(this.progress(), Date.now()));
  }

  private progress(): BatchProgress {
    return progressOf(this.memo, this.endedAt === null ? 'running' : 'completed', this.endedAt);
  }

  /** What is over keeps its end: nobody cancels a batch of which every item has ended. */
  private change(values: Partial<BatchSettings>): BatchProgress {
    const isDone = this.memo.settled >= this.memo.items;
    if (this.endedAt === null && !(isDone && values.ending !== undefined)) {
      this.memo = { ...this.memo, ...values };
      this.write();
    }
    return this.progress();
  }
}
