import { Context } from '@temporalio/activity';
import { ActivityCancelledError, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { CONCURRENCY } from '../core/batch/items';
import {
  type BatchActivities,
  batchMemo,
  type BatchMemo,
  isBeyondTolerance,
  isPosition,
  type Lane,
  type Position,
  type RunItemsInput,
  wasBegun,
  withEnd,
} from '../core/batch/state';
import { SEND_PERMISSION_MS } from '../core/cadence';
import { type End, endWithoutReceipt, mayTryAgain } from '../core/end';
import { chunkWorkflowId, digestOf } from '../core/ids';
import { ItemsGoneError, ItemsOfBatch, jobOf, type NamedItem, startItem } from '../temporal/batch-items';
import { eachConcurrently } from '../temporal/each-concurrently';
import { ignoreClosed } from '../temporal/existing-run';
import { findEnd, type FoundFollowUp } from '../temporal/follow-up-end';
import { grpcError, isTransient } from '../temporal/grpc-status';
import { endsOf, keepLatest, lastingEnd, type ListedEnd, openOf } from '../temporal/lists';
import { contextOf } from '../temporal/sdk-internals';
import { askAgainIn, ownRun, serverClock } from './attempt';

/** A look while items end, and one while nothing happens: a live starter shows an end within ten seconds. */
const BUSY_WAIT_MS = 1_000;
const QUIET_WAIT_MS = 5_000;

/** Items that are started by one permission of the server. */
const GROUP = 10;

/** Questions to the server at once. */
const AT_ONCE = 16;

/** How long one attempt works before it asks for its next one, so that a lost worker costs little. */
const ATTEMPT_MS = 60_000;

/** The server hears at least so often that the attempt lives. Its heartbeat time-out is half a minute. */
const BEAT_MS = 5_000;

/** A batch costs the server at most three events an item: a round has seven, and comes for each minute with news only within. */
const EVENTS_A_ROUND = 7;
const EVENTS_AN_ITEM = 2;
const FREE_ROUNDS = 10;
const ROUND_MS = 60_000;

export const runItems: BatchActivities['runItems'] = async (input) => {
  const { info } = Context.current();
  const kept: unknown = info.heartbeatDetails;
  const work = new Work(input, isPosition(kept) ? kept : input.position);
  try {
    await work.run();
  } catch (error) {
    if (error instanceof ItemsGoneError)
      throw ApplicationFailure.nonRetryable(error.message, 'BatchItemsGone');
    throw error;
  }
  if (work.isOver()) return work.position;
  await work.keep();
  // A cancellation that comes while the attempt reports finds the position in the failure.
  throw askAgainIn(work.hasNews ? BUSY_WAIT_MS : QUIET_WAIT_MS, work.words(), work.position);
};

/** One look at a batch: what has ended, and what can begin. */
class Work {
  hasNews = false;
  private readonly client = Context.current().client;
  private readonly info = Context.current().info;
  private readonly items: ItemsOfBatch;
  private readonly begunAt = performance.now();
  private memo!: BatchMemo;
  /** The follow-ups of the batch that run, by the server's list: a hint, as it lags. */
  private open = new Set<string>();
  /** The workflow id of each lane's next item, by the lane's end. */
  private readonly ids = new Map<number, string>();
  /** The runs that are retried, by the number of the item; null for one that is gone. */
  private readonly again = new Map<number, string | null>();
  private ends: ReadonlyMap<string, ListedEnd> = new Map();
  private keptAt = performance.now();
  private isKept = true;
  /** The next item lies beyond the bound: the workflow must write down that it may be begun. */
  private needsRound = false;

  constructor(
    private readonly input: RunItemsInput,
    public position: Position,
  ) {
    this.items = new ItemsOfBatch(this.client, { ...input, ...ownRun() });
  }

  async run(): Promise<void> {
    await this.readMemo();
    const { begun, cursor } = this.position;
    const noiseMs = (begun?.quietAt ?? 0) - serverClock()();
    if (noiseMs > 0) throw askAgainIn(noiseMs, 'what the run before has begun to start is waited for');
    this.open = await openOf(this.client, this.input.batchId);
    if (begun !== null && cursor < begun.cursor) this.ends = await this.readEnds();
    await this.settle(this.position.lanes);
    if (this.memo.ending === 'cancel-running') await this.cancelOpen();
    await this.start();
  }

  /** Whether the workflow has something to do. */
  isOver(): boolean {
    const { position, memo, input } = this;
    const { lanes, cursor, settled } = position;
    const isDone = lanes.length === 0 && cursor >= memo.items;
    const isIdle = !this.mayStart() && this.held() === 0;
    if (memo.ending === 'cancel-running') return isIdle && this.open.size === 0;
    if (isDone || isIdle || this.needsRound) return true;
    if (memo.ending === null && isBeyondTolerance(memo, position)) return true;
    const mayTell = EVENTS_A_ROUND * input.rounds <= EVENTS_AN_ITEM * settled + EVENTS_A_ROUND * FREE_ROUNDS;
    const changed = cursor !== input.position.cursor || settled !== input.position.settled;
    return changed && mayTell && Date.now() - this.info.scheduledTimestampMs > ROUND_MS;
  }

  words(): string {
    const { open, cursor } = this.position;
    return `${open} follow-ups run, ${this.memo.items - cursor} items are in no lane yet`;
  }

  /** Lets the server keep the position for the next attempt, where it has changed. */
  async keep(): Promise<void> {
    if (!this.isKept) await this.beat();
  }

  /**
   * What is to be done, as the workflow has written it down.
   *
   * @throws ApplicationFailure `BatchReset`
   */
  private async readMemo(): Promise<void> {
    const { workflowId, runId } = ownRun();
    const { memo, raw } = await this.client.workflow.getHandle(workflowId, runId).describe();
    if (raw.workflowExtendedInfo?.lastResetTime)
      throw ApplicationFailure.nonRetryable('somebody has reset the batch', 'BatchReset');
    const own = batchMemo(memo);
    if (own === null) throw askAgainIn(QUIET_WAIT_MS, "the memo of the batch can't be read");
    this.memo = own;
    this.position = { ...this.position, bound: own.bound };
  }

  private mayStart(): boolean {
    const { memo, position } = this;
    return !memo.paused && memo.ending === null && !isBeyondTolerance(memo, position);
  }

  /** Places that follow-ups take or may take. */
  private held(): number {
    return this.position.lanes.filter(([, , state]) => state === 'may' || state === 'open').length;
  }

  /** Follow-ups of the batch that run and are in no lane: somebody has retried them, or an earlier run has left them. */
  private others(): number {
    const held = new Set(this.position.lanes.map(([, end]) => this.ids.get(end)));
    return [...this.open].filter((id) => !held.has(id)).length;
  }

  /** Moves lanes on past what has ended. */
  private async settle(lanes: readonly Lane[]): Promise<void> {
    await eachConcurrently(lanes, AT_ONCE, async (lane) => {
      const ended: [string, End][] = [];
      const now = await this.moveOn(lane, ended);
      // At once, so that nothing is counted twice whenever the position is kept.
      for (const [workflowId, end] of ended) this.position = withEnd(this.position, workflowId, end);
      const others = this.position.lanes.flatMap((each) =>
        each[1] !== lane[1] ? [each] : now === null ? [] : [now],
      );
      if (ended.length > 0) this.hasNews = true;
      this.changeTo({ ...this.position, lanes: others });
      if (performance.now() - this.keptAt > BEAT_MS) await this.beat();
    });
    this.changeTo({ ...this.position, open: this.held() + this.others() });
  }

  private changeTo(position: Position): void {
    this.position = position;
    this.isKept = false;
  }

  /** @returns null where all its items have ended */
  private async moveOn([first, end, ...rest]: Lane, ended: [string, End][]): Promise<Lane | null> {
    const [, waitsFor] = rest;
    let [state] = rest;
    if (waitsFor !== undefined && (await this.ask(waitsFor)).end === null)
      return [first, end, state, waitsFor];
    for (let next = first; next < end; next += 1) {
      const item = await this.items.at(next);
      const { workflowId } = item;
      this.ids.set(end, workflowId);
      const notBegun = state === 'new' ? 'new' : 'free';
      const isCancelled = this.memo.ending === 'cancel-running';
      if (this.open.has(workflowId) && !isCancelled) return [next, end, 'open'];
      const inLane = state === 'open' ? 'yes' : 'perhaps';
      const begun = state === 'open' || state === 'may' ? inLane : wasBegun(this.position.begun, next);
      if (begun === 'no') return [next, end, notBegun];
      const listed = state === 'new' ? this.listed(workflowId) : undefined;
      const found = listed ?? (await this.ask(next));
      if (found.end === null) {
        if (!isCancelled || found.batchId === this.input.batchId) return [next, end, 'open'];
        ended.push([workflowId, endWithoutReceipt('left-running')]);
        return next + 1 < end ? [next + 1, end, 'free'] : null;
      }
      const isGone = found.end.outcome === 'gone';
      if (isGone && begun === 'perhaps') return [next, end, notBegun];
      if (this.isRetried(found, state)) {
        this.again.set(next, found.runId ?? null);
        return [next, end, notBegun];
      }
      ended.push([workflowId, found.end]);
      state = notBegun;
    }
    return null;
  }

  /** Each follow-up gets one more run by a retry: what has begun since the batch has is its own. */
  private isRetried({ end, startedAt = 0 }: FoundFollowUp, state: Lane[2]): boolean {
    if (end === null || !mayTryAgain(end, this.input.again)) return false;
    if (end.outcome === 'gone') return state === 'new' || state === 'free';
    return startedAt < Date.parse(this.memo.startedAt);
  }

  private listed(workflowId: string): FoundFollowUp | undefined {
    const end = lastingEnd(this.ends.get(workflowId));
    return end && { end };
  }

  private async ask(number: number, foreignBefore = 0): Promise<FoundFollowUp> {
    const { workflowId, request } = await this.items.at(number);
    return findEnd(this.client, { workflowId, promptDigest: digestOf(request.prompt), foreignBefore });
  }

  /** Of a batch that runs again: how its items had ended. */
  private async readEnds(): Promise<ReadonlyMap<string, ListedEnd>> {
    const ends = new Map<string, ListedEnd>();
    for await (const end of endsOf(this.client, this.input.batchId)) {
      keepLatest(ends, end);
      if (performance.now() - this.keptAt > BEAT_MS) await this.beat();
    }
    return ends;
  }

  private async cancelOpen(): Promise<void> {
    await eachConcurrently(this.open, AT_ONCE, async (workflowId) => {
      await this.client.workflow.getHandle(workflowId).cancel().catch(ignoreClosed);
    });
    this.hasNews = true;
  }

  /** Starts what can begin, group by group. */
  private async start(): Promise<void> {
    const { cancellationSignal } = Context.current();
    while (this.mayStart() && performance.now() - this.begunAt < ATTEMPT_MS && !cancellationSignal.aborted) {
      await this.deal();
      await this.readMemo();
      const free = this.memo.concurrency - this.held() - this.others();
      const ready = this.readyLanes().slice(0, Math.min(free, GROUP));
      if (!this.mayStart() || free <= 0 || ready.length === 0) return;
      await this.startGroup(await this.withoutWaiting(ready));
    }
  }

  /** Opens lanes for the places that are free. */
  private async deal(): Promise<void> {
    const { items, concurrency } = this.memo;
    for (;;) {
      const { lanes, cursor, bound } = this.position;
      const free = Math.min(concurrency, CONCURRENCY.maximum) - lanes.length - this.others();
      if (free <= 0 || cursor >= items) return;
      if (cursor >= bound) {
        this.needsRound = true;
        return;
      }
      const dealt: Lane[] = [];
      for (let next = cursor; dealt.length < free && next < Math.min(items, bound);) {
        const end = await this.items.endOfLane(next);
        dealt.push([next, end, 'new']);
        next = end;
      }
      this.changeTo({ ...this.position, lanes: [...lanes, ...dealt], cursor: dealt.at(-1)?.[1] ?? cursor });
      await this.settle(dealt);
    }
  }

  private readyLanes(): Lane[] {
    const busy = new Set([...this.open].map(jobOf));
    return this.position.lanes.filter(([next, end, state, waitsFor]) => {
      if (state === 'may' || state === 'open' || waitsFor !== undefined) return false;
      if (busy.has(jobOf(this.ids.get(end) ?? ''))) return false;
      if (next >= this.position.bound) this.needsRound = true;
      return next < this.position.bound;
    });
  }

  /** The lanes of which nobody else has started a later item by its own name. */
  private async withoutWaiting(lanes: readonly Lane[]): Promise<Lane[]> {
    const ready: Lane[] = [];
    await eachConcurrently(lanes, GROUP, async (lane) => {
      const [next, end, state] = lane;
      const waitsFor = state === 'new' ? await this.openLater(next + 1, end) : undefined;
      if (waitsFor === undefined) ready.push(lane);
      else this.replace(lane, [next, end, 'new', waitsFor]);
    });
    return ready;
  }

  private async openLater(from: number, end: number): Promise<number | undefined> {
    let found: number | undefined;
    const later = Array.from({ length: end - from }, (_, index) => from + index);
    await eachConcurrently(later, AT_ONCE, async (number) => {
      if (found !== undefined || !(await this.items.at(number)).isOwnName) return;
      if ((await this.ask(number)).end === null) found = number;
    });
    return found;
  }

  private replace([, end]: Lane, now: Lane): void {
    this.changeTo({
      ...this.position,
      lanes: this.position.lanes.map((each) => (each[1] === end ? now : each)),
    });
  }

  private async startGroup(lanes: readonly Lane[]): Promise<void> {
    if (lanes.length === 0) return;
    for (const lane of lanes) this.replace(lane, [lane[0], lane[1], 'may']);
    const startBy = await this.permission();
    this.hasNews = true;
    await eachConcurrently(lanes, GROUP, async ([next, end, state]) => {
      const item = await this.items.at(next);
      const begun = state === 'may' || wasBegun(this.position.begun, next) !== 'no';
      const how = await this.startOne(item, next, startBy);
      if (how === 'started') this.replace([next, end, 'may'], [next, end, 'open']);
      else if (how === 'exists') {
        const found = await this.ask(next, begun ? 0 : Infinity);
        if (found.end?.outcome === 'conflict') this.pass([next, end, 'may'], item, found.end);
        // Any other end is found by the next look.
        else this.open.add(item.workflowId);
      }
    });
  }

  /** The name of an item that belongs to another message: it has its end. */
  private pass([next, end]: Lane, { workflowId }: NamedItem, how: End): void {
    const lanes = this.position.lanes.flatMap((each): Lane[] => {
      if (each[1] !== end) return [each];
      return next + 1 < end ? [[next + 1, end, 'free']] : [];
    });
    this.changeTo({ ...withEnd(this.position, workflowId, how), lanes });
  }

  private async startOne(
    item: NamedItem,
    number: number,
    startBy: () => number,
  ): Promise<'started' | 'exists' | 'unknown'> {
    const { batchId } = this.input;
    const until = startBy();
    // A worker's connection takes a deadline of 0 for none (SDK 1.24), and one that has passed may still send.
    if (until <= Date.now()) return 'unknown';
    try {
      const run = this.again.get(number) ?? null;
      await this.client.withDeadline(until, () =>
        startItem(this.client, this.info.taskQueue, item.request, batchId, run),
      );
      return 'started';
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return 'exists';
      // The next look asks whether it has begun.
      if (isTransient(error)) return 'unknown';
      const words = grpcError(error)?.words;
      if (words !== undefined) throw new Error(`the server refuses to start ${item.workflowId}: ${words}`);
      throw error;
    }
  }

  /**
   * Asks the server whether it still waits for this attempt, and lets it keep which items may be started: a frozen process
   * that wakes must start nothing, and the next attempt must know what this one may have begun.
   *
   * @returns until when items may be started
   */
  private async permission(): Promise<() => number> {
    const askedAt = Date.now();
    const askedTick = performance.now();
    await this.beat();
    return () => {
      const lapsed = performance.now() - askedTick > SEND_PERMISSION_MS;
      return lapsed ? 0 : askedAt + SEND_PERMISSION_MS;
    };
  }

  /** @throws CancelledFailure with the position, where the server wants no more of it */
  private async beat(): Promise<void> {
    const { position } = this;
    this.isKept = true;
    this.keptAt = performance.now();
    try {
      const context = { serializationContext: contextOf(this.info) };
      await this.client.activity.heartbeat(this.info.taskToken, position, context);
    } catch (error) {
      if (error instanceof ActivityCancelledError)
        throw new CancelledFailure('the batch starts no further item', [position]);
      throw error;
    }
  }
}

/** A signal does not end a start delay (measured, server 1.32.0); to terminate one needs no worker. */
export const closeChunks: BatchActivities['closeChunks'] = async ({ batchId, digest, chunks }) => {
  const { client } = Context.current();
  const ids = (chunks?.firsts ?? []).map((_, number) => chunkWorkflowId(batchId, digest ?? '', number));
  await eachConcurrently(ids, AT_ONCE, async (id) => {
    await client.workflow.getHandle(id).terminate('its batch has ended').catch(ignoreClosed);
  });
};
