import { Context } from '@temporalio/activity';
import {
  ActivityCancelledError,
  type Client,
  WorkflowExecutionAlreadyStartedError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import {
  type BatchActivities,
  batchMemo,
  type BatchMemo,
  type Begun,
  isBeyondTolerance,
  isPosition,
  type Lane,
  type Position,
  type RunItemsInput,
  wasBegun,
  withEnd,
} from '../core/batch/state';
import { type End, endWithoutReceipt, mayTryAgain } from '../core/end';
import { chunkWorkflowId } from '../core/ids';
import { keyword } from '../core/starts';
import { ItemsGoneError, ItemsOfBatch, jobOf, startItem } from '../temporal/batch-items';
import { eachConcurrently } from '../temporal/each-concurrently';
import { describeWorkflow, ignoreClosed, stateOf } from '../temporal/existing-run';
import { findEnd, type FoundFollowUp } from '../temporal/follow-up-end';
import { grpcError, isTransient } from '../temporal/grpc-status';
import {
  endsOf,
  keepLatest,
  lastingEnd,
  type ListedEnd,
  listWorkflows,
  openOf,
  RUNNING,
} from '../temporal/lists';
import { askAgainIn, askPermission, ownRun, serverClock } from './attempt';

/** A look while items end, and one while nothing happens: a live starter shows an end within ten seconds. */
const BUSY_WAIT_MS = 1_000;
const QUIET_WAIT_MS = 5_000;

/** Items that are started by one permission of the server. */
const GROUP = 10;

/** Questions to the server at once. */
const AT_ONCE = 16;

/** How long one attempt starts items before it asks for its next one, so that a lost worker costs little. */
const ATTEMPT_MS = 60_000;

/** The server hears at least so often that the attempt lives. Its heartbeat time-out is half a minute. */
const BEAT_MS = 5_000;

/** Of so many looks one asks for what the list shows as open: about once a minute. */
const LOOKS_PER_CHECK = 12;

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
      throw ApplicationFailure.nonRetryable(error.message, 'BatchItemsGone', work.position);
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
  private memo!: BatchMemo;
  /** The follow-ups of the batch that run, by the server's list: a hint, as it lags. */
  private open = new Set<string>();
  /** The workflow id of each lane's next item, by the lane's end. */
  private readonly ids = new Map<number, string>();
  /** The runs that are retried, by the number of the item; null for one that is gone. */
  private readonly again = new Map<number, string | null>();
  /** Lanes whose job has a later item open, by their ends: somebody else has started it by its own name. */
  private readonly blocked = new Set<number>();
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
    const { begun } = this.position;
    const noiseMs = (begun?.quietAt ?? 0) - serverClock()();
    if (noiseMs > 0) throw askAgainIn(noiseMs, 'what the run before has begun to start is waited for');
    this.open = await openOf(this.client, this.input.batchId);
    if (this.info.attempt % LOOKS_PER_CHECK === 0) await this.checkOpen();
    if (begun?.isCertain === true && !begun.isExact)
      this.changeTo({ ...this.position, begun: await this.resolved(begun) });
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
    return this.position.lanes.filter(([, , state]) => state !== 'free').length;
  }

  /** Follow-ups of the batch that run and are in no lane: somebody has retried them, or an earlier run has left them. */
  private others(): number {
    const held = new Set(this.position.lanes.map(([, end]) => this.ids.get(end)));
    return [...this.open].filter((id) => !held.has(id)).length;
  }

  /** The list may show for ever as open what has ended or was deleted. */
  private async checkOpen(): Promise<void> {
    await eachConcurrently([...this.open], AT_ONCE, async (id) => {
      await this.beatInTime();
      const state = stateOf((await describeWorkflow(this.client, id))?.status.name ?? 'COMPLETED');
      if (state !== 'running') this.open.delete(id);
    });
  }

  /**
   * Asks for everything that the runs before may have begun: from then on it is known. Items of a lane are begun in their
   * order, so that nothing behind one that does not exist was begun.
   */
  private async resolved(begun: Begun): Promise<Begun> {
    const lanes = [...begun.lanes];
    let { cursor } = begun;
    while (cursor < begun.bound) {
      const end = await this.items.endOfLane(cursor);
      lanes.push([cursor, end, 'free']);
      cursor = end;
    }
    const known: Lane[] = [];
    await eachConcurrently(lanes, AT_ONCE, async ([first, end, state]) => {
      let next = first;
      while (next < end && (await this.ask(next)).end?.outcome !== 'gone') next += 1;
      // One that is known to have been begun is gone; the other ones behind it were not begun.
      if (next < end) known.push([next, end, next === first && state === 'open' ? 'open' : 'free']);
    });
    return { ...begun, bound: cursor, cursor, lanes: known, isExact: true };
  }

  /** Moves lanes on past what has ended. */
  private async settle(lanes: readonly Lane[]): Promise<void> {
    await eachConcurrently(lanes, AT_ONCE, async ([first, end, was]) => {
      let state = was;
      for (let next = first; next < end; next += 1) {
        const how = await this.standing(next, end, state);
        if (typeof how === 'string') {
          if (how !== state) this.replace([next, end, how]);
          return;
        }
        this.pass(next, end, how);
        state = 'free';
      }
    });
    const open = this.held() + this.others();
    if (open !== this.position.open) this.changeTo({ ...this.position, open });
  }

  /** Whether an item has begun or may begin; its end, where it has ended. */
  private async standing(item: number, laneEnd: number, state: Lane[2]): Promise<'free' | 'open' | End> {
    const { workflowId } = await this.items.named(item);
    this.ids.set(laneEnd, workflowId);
    const isCancelled = this.memo.ending === 'cancel-running';
    if (this.open.has(workflowId) && !isCancelled) return 'open';
    const known = { open: 'yes', may: 'perhaps', free: wasBegun(this.position.begun, item) } as const;
    const begun = known[state];
    if (begun === 'no') return 'free';
    const before = state === 'free' ? await this.endBefore(workflowId) : undefined;
    if (before !== undefined) return before;
    const { end, runId, startedAt, batchId } = await this.ask(item);
    if (end === null) {
      if (!isCancelled) return 'open';
      if (batchId !== this.input.batchId) return endWithoutReceipt('left-running');
      // The list may not show it yet.
      await this.cancel(workflowId);
      return 'open';
    }
    const isGone = end.outcome === 'gone';
    if (isGone && begun === 'perhaps') return 'free';
    if (!mayTryAgain(end, this.input.again)) return end;
    // Each follow-up gets one more run by a retry: what has begun since the batch has is its own.
    const isFromBefore = isGone
      ? state === 'free'
      : (startedAt ?? Infinity) < Date.parse(this.memo.startedAt);
    if (!isFromBefore) return end;
    this.again.set(item, runId ?? null);
    return 'free';
  }

  /** The end of an item in an earlier run of the batch, where the list tells it and a retry does not change it. */
  private async endBefore(workflowId: string): Promise<End | undefined> {
    const { runId } = ownRun();
    const ends = await endsBefore(this.client, runId, async () => {
      const listed = new Map<string, ListedEnd>();
      for await (const end of endsOf(this.client, this.input.batchId)) {
        keepLatest(listed, end);
        await this.beatInTime();
      }
      return listed;
    });
    const end = lastingEnd(ends.get(workflowId));
    return end && !mayTryAgain(end, this.input.again) ? end : undefined;
  }

  private async ask(item: number, foreignBefore = 0): Promise<FoundFollowUp> {
    const { workflowId, promptDigest } = await this.items.named(item);
    await this.beatInTime();
    return findEnd(this.client, { workflowId, promptDigest, foreignBefore });
  }

  private async cancelOpen(): Promise<void> {
    await eachConcurrently([...this.open], AT_ONCE, (workflowId) => this.cancel(workflowId));
    this.hasNews = true;
  }

  private async cancel(workflowId: string): Promise<void> {
    await this.client.workflow.getHandle(workflowId).cancel().catch(ignoreClosed);
  }

  /** Starts what can begin, group by group. */
  private async start(): Promise<void> {
    const until = performance.now() + ATTEMPT_MS;
    const { cancellationSignal } = Context.current();
    while (this.mayStart() && performance.now() < until && !cancellationSignal.aborted) {
      await this.deal();
      const ready = await this.readyLanes();
      await this.readMemo();
      const free = this.memo.concurrency - this.held() - this.others();
      const group = ready.slice(0, Math.max(0, free));
      if (!this.mayStart() || group.length === 0) return;
      await this.startGroup(group);
    }
  }

  /** Opens lanes for the places that are free. */
  private async deal(): Promise<void> {
    const { items, concurrency } = this.memo;
    for (;;) {
      const { lanes, cursor, bound } = this.position;
      const free = concurrency - lanes.length - this.others();
      if (free <= 0 || cursor >= items) return;
      if (cursor >= bound) {
        this.needsRound = true;
        return;
      }
      const dealt: Lane[] = [];
      for (let next = cursor; dealt.length < free && next < Math.min(items, bound);) {
        const end = await this.items.endOfLane(next);
        dealt.push([next, end, 'free']);
        next = end;
      }
      this.changeTo({ ...this.position, lanes: [...lanes, ...dealt], cursor: dealt.at(-1)?.[1] ?? cursor });
      await this.settle(dealt);
    }
  }

  /** The next lanes whose next item may begin, a group of them. */
  private async readyLanes(): Promise<Lane[]> {
    const busy = new Set([...this.open].map(jobOf));
    const ready: Lane[] = [];
    for (const lane of this.position.lanes) {
      const [next, end, state] = lane;
      if (ready.length === GROUP) break;
      if (state !== 'free' || this.blocked.has(end) || busy.has(jobOf(this.ids.get(end) ?? ''))) continue;
      if (next >= this.position.bound) this.needsRound = true;
      else if (await this.isOpenLater(lane)) this.blocked.add(end);
      else ready.push(lane);
    }
    return ready;
  }

  /** Whether somebody else has started a later item of a lane by its own name: its turn must not get another message. */
  private async isOpenLater([next, end]: Lane): Promise<boolean> {
    const later = new Set<string>();
    for (let item = next + 1; item < end; item += 1) {
      const { workflowId, isOwnName } = await this.items.named(item);
      if (isOwnName) later.add(workflowId);
    }
    if (later.size === 0) return false;
    const { projectId, jobId } = (await this.items.request(next)).request;
    const ofJob = [keyword('AgentProject', projectId), keyword('AgentJob', jobId)];
    await this.beatInTime();
    for await (const { workflowId } of listWorkflows(this.client, ofJob, { restriction: RUNNING }))
      if (later.has(workflowId)) return true;
    return false;
  }

  private async startGroup(lanes: readonly Lane[]): Promise<void> {
    for (const [next, end] of lanes) this.replace([next, end, 'may']);
    const permission = await this.beat();
    this.hasNews = true;
    await eachConcurrently(lanes, GROUP, async ([next, end]) => {
      const how = await this.startOne(next, permission);
      if (how === 'started') this.replace([next, end, 'open']);
      if (how !== 'exists') return;
      const isFirst = wasBegun(this.position.begun, next) === 'no';
      const found = await this.ask(next, isFirst ? Infinity : 0);
      // The server takes no further run of a name that belongs to another message, or of one that is completed.
      const isRefused = this.again.has(next) && found.runId === this.again.get(next);
      if (found.end !== null && (isRefused || found.end.outcome === 'conflict'))
        this.pass(next, end, found.end);
      // Any other end is found by the next look.
      else this.open.add((await this.items.named(next)).workflowId);
    });
  }

  private async startOne(item: number, permission: () => number): Promise<'started' | 'exists' | 'unknown'> {
    const { request } = await this.items.request(item);
    const { batchId } = this.input;
    try {
      const run = this.again.get(item) ?? null;
      const leftMs = permission();
      if (leftMs <= 0) return 'unknown';
      await this.client.withDeadline(Date.now() + leftMs, () =>
        startItem(this.client, this.info.taskQueue, request, batchId, run),
      );
      return 'started';
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return 'exists';
      // The next look asks whether it has begun.
      if (isTransient(error)) return 'unknown';
      const words = grpcError(error)?.words;
      const { workflowId } = await this.items.named(item);
      throw words === undefined ? error : new Error(`the server refuses to start ${workflowId}: ${words}`);
    }
  }

  /** An item has its end: the lane goes on with the next one. Both at once, so that nothing is counted twice. */
  private pass(item: number, laneEnd: number, how: End): void {
    const workflowId = this.ids.get(laneEnd) ?? '';
    const lanes = this.position.lanes.flatMap((lane): Lane[] => {
      if (lane[1] !== laneEnd) return [lane];
      return item + 1 < laneEnd ? [[item + 1, laneEnd, 'free']] : [];
    });
    this.hasNews = true;
    this.changeTo({ ...withEnd(this.position, workflowId, how), lanes });
  }

  private replace(now: Lane): void {
    const lanes = this.position.lanes.map((lane) => (lane[1] === now[1] ? now : lane));
    this.changeTo({ ...this.position, lanes });
  }

  private changeTo(position: Position): void {
    this.position = position;
    this.isKept = false;
  }

  private async beatInTime(): Promise<void> {
    if (performance.now() - this.keptAt > BEAT_MS) await this.beat();
  }

  /**
   * Lets the server keep the position, which says what may have been begun.
   *
   * @returns for how many milliseconds items may be started
   * @throws ApplicationFailure with the position, where somebody has cancelled the batch
   */
  private async beat(): Promise<() => number> {
    const { position } = this;
    this.isKept = true;
    this.keptAt = performance.now();
    try {
      return await askPermission(position);
    } catch (error) {
      if (!(error instanceof ActivityCancelledError)) throw error;
      // The SDK does not know of the cancellation, and would drop the details of a cancelled failure (1.24).
      const message = 'the batch starts no further item';
      throw ApplicationFailure.create({
        message,
        type: 'BatchCancelled',
        nonRetryable: true,
        details: [position],
        cause: error,
      });
    }
  }
}

/** How the items of a batch had ended, by the batch's run: a retry of many items asks for it again and again. */
const known = new WeakMap<Client, Map<string, Promise<ReadonlyMap<string, ListedEnd>>>>();

/** Batches at a time whose earlier ends a worker keeps: 100,000 ends have some 30 MiB. */
const MAX_KNOWN = 3;

function endsBefore(
  client: Client,
  runId: string,
  read: () => Promise<ReadonlyMap<string, ListedEnd>>,
): Promise<ReadonlyMap<string, ListedEnd>> {
  const kept = known.get(client) ?? new Map<string, Promise<ReadonlyMap<string, ListedEnd>>>();
  known.set(client, kept);
  const ends = kept.get(runId) ?? read();
  kept.delete(runId);
  kept.set(runId, ends);
  ends.catch(() => kept.delete(runId));
  for (const oldest of [...kept.keys()].slice(0, -MAX_KNOWN)) kept.delete(oldest);
  return ends;
}

/** A signal does not end a start delay (measured, server 1.32.0); to terminate one needs no worker. */
export const closeChunks: BatchActivities['closeChunks'] = async ({ batchId, digest, chunks }) => {
  const { client } = Context.current();
  const ids = (chunks?.firsts ?? []).map((_, number) => chunkWorkflowId(batchId, digest ?? '', number));
  await eachConcurrently(ids, AT_ONCE, async (id) => {
    await client.workflow.getHandle(id).terminate('its batch has ended').catch(ignoreClosed);
  });
};
