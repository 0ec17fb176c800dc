import {
  ActivityCancellationType,
  ActivityFailure,
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  defineQuery,
  defineUpdate,
  makeContinueAsNewFunc,
  metricMeter,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  TimeoutFailure,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { settingProblems } from '../../core/batch/items';
import {
  type BatchActivities,
  type BatchInput,
  type BatchMemo,
  type BatchSettings,
  isBeyondTolerance,
  isPosition,
  MEMO_BATCH,
  type Position,
  positionOf,
  QUERY_BATCH_PROGRESS,
  START,
  UPDATE_CANCEL_RUNNING,
  UPDATE_PAUSE,
  UPDATE_RESUME,
  UPDATE_SET_CONCURRENCY,
} from '../../core/batch/state';
import {
  batchDetails,
  type BatchProgress,
  type BatchSummary,
  progressOf,
  summaryOf,
  whyIncomplete,
} from '../../core/batch/progress';
import { isRecord, problemTexts } from '../../core/checks';
import { measure } from '../../core/metrics';
import { keyword } from '../../core/starts';
import { CancelledByHand, pendingDetails, workerSettings } from '../activity-proxies';
import { tell } from '../notice';
import { batchFailure, checkBatch, type ContinuedBatch, isContinued } from './input';

/** Items that may be begun before the batch writes down again how far it is: a round costs seven events. */
const ROUND_ITEMS = 200;

/** How long the activity may take to notice that it is cancelled: its heartbeat time-out, if its worker is dead. */
const LAST_WORD_MS = 40_000;

/** How long the request that follows `cancelRunning` is waited for: without it the server would show the batch as failed. */
const CANCEL_REQUEST_MS = 5_000;

/**
 * The activities of a batch ask the Temporal server only, so they are on the queue of workflow tasks.
 *
 * - No schedule-to-close: a batch lasts as long as its items. An attempt works for a minute at most, and asks for its next one
 *   with an interval of its own; without one, a worker was lost, and another takes over after five seconds.
 * - It heartbeats every five seconds; a worker that died is noticed in half a minute, longer than a permission to start.
 * - The cancellation waits for its last word, the position. Nobody waits for more than `LAST_WORD_MS`.
 */
const { runItems, closeChunks } = proxyActivities<BatchActivities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '30 seconds',
  retry: { initialInterval: 5_000, backoffCoefficient: 1, maximumInterval: '5 minutes' },
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
});

/**
 * Sends many follow-ups with limited concurrency, and counts how they end. It is a cursor over its items: an activity starts
 * them and looks how they end; the workflow writes down how far it may go, and decides. It holds nothing that grows with them.
 *
 * @returns the summary, never the items themselves
 * @throws ApplicationFailure `InvalidBatch`, `ToleranceExceeded` or `BatchIncomplete`, with the summary as its detail
 */
export async function followUpBatch(input: BatchInput | ContinuedBatch): Promise<BatchSummary> {
  const { workflowId, startTime, continuedFromExecutionRunId, typedSearchAttributes } = workflowInfo();
  // A cron schedule and a retry policy make runs too, with the input of a caller.
  if (continuedFromExecutionRunId !== undefined && isContinued(input))
    return new Batch(input, input.continued, input.rounds).run();
  const plan = checkBatch(input, workflowId);
  const { batchId, items, chunks, digest, again, concurrency, tolerate, begun } = plan;
  // Lists and filters find the batch by it. The action of a schedule can't set it: it does not know the batch id.
  const ofBatch = keyword('FollowUpBatch', batchId);
  if (typedSearchAttributes.get(ofBatch.key) !== ofBatch.value) upsertSearchAttributes([ofBatch]);
  const settings: BatchSettings = {
    ...{ batchId, digest, again, concurrency, tolerate },
    ...{ paused: false, bound: 0, ending: null, movingSince: null },
    items: chunks?.items ?? items?.length ?? 0,
    startedAt: new Date(startTime).toISOString(),
  };
  return new Batch(plan, { ...settings, ...START, begun }, 0).run();
}

/** Holds a part of a batch's items in its input, and is ended with its batch. It runs only where its start delay is over. */
export function followUpBatchItems(): Promise<void> {
  return Promise.resolve();
}

/** The source of a batch's items is handed on as it is. */
type Source = Pick<BatchInput, 'items' | 'chunks'>;

class Batch {
  private readonly whole = CancellationScope.current();
  private changes = 0;
  private ended: 'by itself' | 'cancelled' | null = null;
  /** Whether its end is told, as the latest round has answered; undefined where none has. */
  private notify: boolean | undefined;

  constructor(
    private readonly source: Source,
    private memo: BatchMemo,
    private rounds: number,
  ) {
    this.receiveOperators();
  }

  async run(): Promise<BatchSummary> {
    await CancellationScope.nonCancellable(async () => {
      const { batchId, digest } = this.memo;
      const { chunks } = this.source;
      do {
        await this.work();
        if (chunks) await closeChunks({ batchId, digest, chunks });
        // Somebody may have asked for it meanwhile.
      } while (this.memo.ending === 'cancel-running' && this.hasOpen());
      if (this.memo.ending === 'cancel-running')
        await condition(() => this.whole.consideredCancelled, CANCEL_REQUEST_MS);
      await condition(allHandlersFinished);
    });
    const why = whyIncomplete(this.memo);
    const isCancelled = this.breaksOff() || this.memo.ending === 'cancel-running';
    this.ended = isCancelled ? 'cancelled' : 'by itself';
    const outcome = isCancelled ? 'cancelled' : (why?.type ?? 'done');
    measure(metricMeter, 'batchEnds', 1, { outcome });
    this.write();
    await CancellationScope.nonCancellable(() => this.tellEnd(outcome));
    if (isCancelled) throw new CancelledFailure('The batch was cancelled.');
    const summary = { ...summaryOf(this.memo), endedAt: new Date(Date.now()).toISOString() };
    if (why !== null) throw batchFailure(why.type, why.message, summary);
    return summary;
  }

  private async tellEnd(outcome: string): Promise<void> {
    const notify = this.notify ?? (await workerSettings()).notify;
    if (notify !== true) return;
    const { batchId, items, settled, unknownDeliveries } = this.memo;
    const data = {
      workflowId: workflowInfo().workflowId,
      batchId,
      outcome,
      items,
      settled,
      unknownDeliveries,
    };
    await tell({ type: 'follow-up-batch.ended', data });
  }

  /** Somebody has cancelled it, and its open follow-ups continue. */
  private breaksOff(): boolean {
    return this.whole.consideredCancelled && this.memo.ending !== 'cancel-running' && !this.isDone();
  }

  private isDone(): boolean {
    return this.memo.lanes.length === 0 && this.memo.cursor >= this.memo.items;
  }

  private hasOpen(): boolean {
    return this.memo.lanes.some(([, , state]) => state === 'may' || state === 'open');
  }

  private async work(): Promise<void> {
    for (;;) {
      const { changes, memo } = this;
      if (this.isDone() || this.breaksOff()) return;
      if (memo.ending !== null && memo.ending !== 'cancel-running' && !this.hasOpen()) return;
      // A request to cancel it would be lost.
      const mayContinue = allHandlersFinished() && !this.whole.consideredCancelled && memo.ending === null;
      if (workflowInfo().continueAsNewSuggested && mayContinue) await this.continueAsNew();
      if (memo.paused && !this.hasOpen() && memo.ending === null) {
        this.write();
        await condition(() => this.changes > changes || this.breaksOff());
        continue;
      }
      const isOver = await this.round();
      if (isOver) return;
    }
  }

  /** @returns whether nothing more is to be done */
  private async round(): Promise<boolean> {
    const { memo, source } = this;
    const bound = Math.max(memo.cursor + ROUND_ITEMS, memo.begun?.cursor ?? 0);
    this.memo = { ...memo, bound: Math.min(memo.items, bound), movingSince: Date.now() };
    this.write();
    this.rounds += 1;
    const input = { position: positionOf(this.memo), rounds: this.rounds, chunks: source.chunks };
    // An operator may complete it with nothing.
    const activity = new CancelledByHand(async () => ({
      answer: await runItems(input).catch((error: unknown) => error),
    }));
    await condition(() => activity.end !== undefined || this.breaksOff());
    let kept: unknown = null;
    const isBrokenOff = activity.end === undefined;
    if (isBrokenOff) {
      kept = (await pendingDetails('runItems'))?.details;
      activity.cancel();
      await condition(() => activity.end !== undefined, LAST_WORD_MS);
    }
    const answer: unknown = activity.end?.answer;
    if (answer instanceof Error && !(answer instanceof ActivityFailure)) throw answer;
    const { cause } = answer instanceof ActivityFailure ? answer : { cause: undefined };
    const details: unknown = cause instanceof ApplicationFailure ? cause.details?.[0] : undefined;
    const last: unknown = cause instanceof TimeoutFailure ? cause.lastHeartbeatDetails : kept;
    if (isRecord(answer) && isPosition(answer)) this.notify = 'notify' in answer;
    // Its own last word is exact; what the server has kept of it may be behind.
    const exact = [answer, details].find(isPosition);
    const told = exact ?? (isPosition(last) ? last : undefined);
    if (told !== undefined) this.take(told);
    if (exact !== undefined) this.memo = { ...this.memo, movingSince: null };
    // With the wish to cancel what is open, which came meanwhile, it goes on.
    if (isBrokenOff) return this.breaksOff();
    if (answer instanceof Error || told === undefined) {
      // Nobody knows what the activity has begun: the next run of the batch asks for everything that may have been.
      const isGone = cause instanceof ApplicationFailure && cause.type === 'BatchItemsGone';
      this.memo = { ...this.memo, ending: isGone ? 'items-gone' : 'reset' };
      return true;
    }
    // It may have returned before it knew that its open follow-ups are to be cancelled.
    return this.memo.ending === 'cancel-running' && this.memo.open === 0 && !this.hasOpen();
  }

  private take(position: Position): void {
    const before = { ...this.memo.byStatus, ...this.memo.byFailure };
    for (const [outcome, times] of Object.entries({ ...position.byStatus, ...position.byFailure }))
      measure(metricMeter, 'batchItems', times - (before[outcome] ?? 0), { outcome });
    this.memo = { ...this.memo, ...position };
    if (this.memo.ending === null && isBeyondTolerance(this.memo, position))
      this.memo = { ...this.memo, ending: 'tolerance' };
  }

  private async continueAsNew(): Promise<void> {
    // The server hands on the memo from the start of a run, without the run's own changes to it (measured).
    const memo = { ...workflowInfo().memo, [MEMO_BATCH]: this.memo };
    const { items, chunks } = this.source;
    const source = items === undefined ? { chunks } : { items };
    const { typedSearchAttributes } = workflowInfo();
    const next = makeContinueAsNewFunc<typeof followUpBatch>({ memo, typedSearchAttributes });
    await next({ ...source, continued: this.memo, rounds: this.rounds } as ContinuedBatch);
  }

  /** What is in the memo is what the activity, a further run and everybody without a worker know. */
  private write(): void {
    upsertMemo({ [MEMO_BATCH]: this.memo });
    setCurrentDetails(batchDetails(progressOf(this.memo, this.ended), Date.now()));
  }

  /** The query and the updates of a batch. Each update returns the progress after it. */
  private receiveOperators(): void {
    const change = (values: Partial<BatchSettings>): BatchProgress => {
      this.memo = { ...this.memo, ...values };
      this.changes += 1;
      if (this.ended === null) this.write();
      return progressOf(this.memo, this.ended);
    };
    setHandler(defineQuery<BatchProgress>(QUERY_BATCH_PROGRESS), () => progressOf(this.memo, this.ended), {
      description: 'Where the batch stands: counts, open follow-ups, the first failures.',
    });
    const offer = (name: string, values: Partial<BatchSettings>, description: string) => {
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
