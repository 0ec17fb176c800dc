import { Context } from '@temporalio/activity';
import {
  type BatchActivities,
  type BatchMemo,
  type Chunks,
  isBeyondTolerance,
  isIdle,
  isPosition,
  type Lane,
  type Position,
  positionOf,
  wasBegun,
  withEnd,
} from '../../core/batch/state';
import { type End, endWithoutReceipt, mayTryAgain } from '../../core/end';
import { chunkWorkflowId, jobOf } from '../../core/ids';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { cancelAll, ignoreClosed } from '../../temporal/existing-run';
import { LIST_LAG_MS, openOf } from '../../temporal/lists';
import { pollAgainIn, currentRun, serverClock } from '../attempt';
import { requestSendPermission } from '../send-message';
import { ItemsOnServer, readMemo } from './on-server';

/** Between looks, while items end and while nothing happens: a live starter shows an end within ten seconds. */
const BUSY_WAIT_MS = 1_000;
const QUIET_WAIT_MS = 5_000;

/** The heartbeat time-out of `runItems` is half a minute. */
const BEAT_MS = 5_000;

/** Items that are started by one permission of the server. */
const GROUP = 10;

/** How long one attempt starts items: a worker that is lost costs as little. */
const ATTEMPT_MS = 60_000;

/** Of so many looks one asks for what the list shows as open: about once a minute. */
const LOOKS_PER_CHECK = 12;

/** The first rounds come soon, because people look at what they have just started; those that follow, each minute. */
const FIRST_ROUND_MS = 2_000;
const ROUND_MS = 60_000;

export const runItems: BatchActivities['runItems'] = async ({ chunks }) => {
  const kept: unknown = Context.current().info.heartbeatDetails;
  const memo = await readMemo();
  const before = isPosition(kept) ? kept : positionOf(memo);
  const work = new Work(chunks, memo, before);
  if (memo.ending !== 'cancelled') {
    await work.run();
    // The end of a paused activity would let another one follow that is not paused.
    if (work.position !== before || work.isOver()) await work.beat();
  }
  if (work.isOver()) return work.position;
  throw pollAgainIn(work.position !== before ? BUSY_WAIT_MS : QUIET_WAIT_MS, work.waitsFor);
};

/** One look at a batch. */
class Work {
  private readonly info = Context.current().info;
  private readonly client = Context.current().client;
  private readonly items: ItemsOnServer;
  private readonly serverTime = serverClock();
  private keptAt = performance.now();
  /** The runs that are retried, by the number of the item; null for one that is gone. */
  private readonly again = new Map<number, string | null>();
  /** Lanes whose job has a later item open that somebody else has started, by their ends. */
  private readonly blocked = new Set<number>();
  /** The message of the failed attempt, which the Web UI and `temporal workflow describe` show. */
  waitsFor = 'the batch continues';

  constructor(
    chunks: Chunks | undefined,
    private memo: BatchMemo,
    public position: Position,
  ) {
    this.items = new ItemsOnServer(this.client, { ...currentRun(), ...memo, chunks }, async () => {
      if (performance.now() - this.keptAt > BEAT_MS) await this.beat();
    });
  }

  async run(): Promise<void> {
    this.items.open = await openOf(this.client, this.memo.batchId);
    if (this.info.attempt % LOOKS_PER_CHECK === 0) await this.items.checkOpen();
    if (this.serverTime() < Date.parse(this.memo.startedAt) + LIST_LAG_MS)
      await this.items.addOpen(this.position.begun?.lanes ?? []);
    await this.settle(this.position.lanes);
    if (this.memo.ending === 'cancel-running') await cancelAll(this.client, this.items.open);
    await this.start();
  }

  isOver(): boolean {
    const { position, memo } = this;
    const { cursor, settled } = position;
    if (memo.ending === 'cancel-running') return this.items.open.size === 0;
    if (settled >= memo.items || memo.ending === 'cancelled') return true;
    if (memo.ending === null && isBeyondTolerance(memo, position)) return true;
    // The workflow must write down a further bound first.
    if (this.mayStart() ? cursor >= memo.bound && memo.bound < memo.items : isIdle(position)) return true;
    // A round has seven events: ten rounds are free, and the others cost the server two an item at most.
    const mayTell = 7 * (memo.rounds - 10) <= 2 * settled;
    const changed = cursor !== memo.cursor || settled !== memo.settled;
    const dueMs = Math.min(FIRST_ROUND_MS * 2 ** memo.rounds, ROUND_MS);
    return changed && mayTell && this.serverTime() - this.info.scheduledTimestampMs > dueMs;
  }

  private mayStart(): boolean {
    const { memo, position } = this;
    return !memo.paused && memo.ending === null && !isBeyondTolerance(memo, position);
  }

  private replace(lane: Lane, changes: Partial<Position> = {}): void {
    const lanes = this.position.lanes.map((each) => (each[1] === lane[1] ? lane : each));
    this.position = { ...this.position, ...changes, lanes: lanes.filter(([next, end]) => next < end) };
  }

  /** An item has its end: the lane goes on with the next one. Both at once, so that nothing is counted twice. */
  private async pass(item: number, laneEnd: number, how: End): Promise<void> {
    const { workflowId } = await this.items.named(item);
    this.replace([item + 1, laneEnd, 'free'], withEnd(this.position, workflowId, how));
    this.items.open.delete(workflowId);
  }

  /** Lets the server keep the position. @returns for how many milliseconds items may be started */
  async beat(): Promise<() => number> {
    this.keptAt = performance.now();
    return requestSendPermission(this.position);
  }

  private async settle(lanes: readonly Lane[]): Promise<void> {
    await eachConcurrently(lanes, async ([first, end, was]) => {
      let state = was;
      for (let next = first; next < end; next += 1) {
        const how = await this.standing(next, state);
        if (typeof how === 'string') {
          if (how !== state) this.replace([next, end, how]);
          return;
        }
        await this.pass(next, end, how);
        state = 'free';
      }
    });
    const { size: open } = this.items.open;
    if (open !== this.position.open) this.position = { ...this.position, open };
  }

  /** Whether an item has begun or may begin; its end, where it has ended. */
  private async standing(item: number, state: Lane[2]) {
    const { workflowId } = await this.items.named(item);
    const isCancelled = this.memo.ending === 'cancel-running';
    if (this.items.open.has(workflowId) && !isCancelled) return 'open';
    if (state === 'free' && !wasBegun(this.position.begun, item)) return 'free';
    const before = state === 'free' ? await this.items.endBefore(workflowId) : undefined;
    if (before && !mayTryAgain(before, this.memo.again)) return before;
    const { end, trouble, runId, startedAt, batchId } = await this.items.ask(item);
    if (trouble !== undefined) this.waitsFor = `the batch waits for ${workflowId}: ${trouble.message}`;
    if (end === null) {
      if (isCancelled && trouble === undefined && batchId !== this.memo.batchId)
        return endWithoutReceipt('left-running');
      this.items.open.add(workflowId);
      return 'open';
    }
    if (end.outcome === 'gone' && state === 'may') return 'free';
    if (!mayTryAgain(end, this.memo.again)) return end;
    // Each follow-up gets one more run by a retry: what has begun since the batch has is its own.
    const begunAt = startedAt ?? (state === 'free' ? 0 : Infinity);
    if (begunAt >= Date.parse(this.memo.startedAt)) return end;
    this.again.set(item, runId ?? null);
    return 'free';
  }

  private async start(): Promise<void> {
    const until = performance.now() + ATTEMPT_MS;
    const { cancellationSignal } = Context.current();
    while (this.mayStart() && performance.now() < until && !cancellationSignal.aborted) {
      await this.deal();
      const ready = await this.readyLanes();
      this.memo = await readMemo();
      const group = ready.slice(0, Math.max(0, this.memo.concurrency - this.items.open.size));
      if (!this.mayStart() || group.length === 0) return;
      await this.startGroup(group);
    }
  }

  private async deal(): Promise<void> {
    const { concurrency, bound } = this.memo;
    for (;;) {
      const { lanes, cursor } = this.position;
      const waiting = lanes.filter(([, , state]) => state === 'free').length;
      const free = concurrency - this.items.open.size - waiting;
      const dealt: Lane[] = [];
      let next = cursor;
      for (; dealt.length < free && next < bound; next = dealt.at(-1)?.[1] ?? bound)
        dealt.push([next, await this.items.endOfLane(next), 'free']);
      if (dealt.length === 0) return;
      this.position = { ...this.position, lanes: [...lanes, ...dealt], cursor: next };
      await this.settle(dealt);
    }
  }

  private async readyLanes(): Promise<Lane[]> {
    const busy = new Set([...this.items.open].map(jobOf));
    const ready: Lane[] = [];
    for (const lane of this.position.lanes) {
      const [next, end, state] = lane;
      if (ready.length === GROUP) break;
      if (state !== 'free' || next >= this.memo.bound || this.blocked.has(end)) continue;
      if (busy.has(jobOf((await this.items.named(next)).workflowId))) continue;
      if (await this.items.isOpenLater(lane)) this.blocked.add(end);
      else ready.push(lane);
    }
    return ready;
  }

  private async startGroup(lanes: readonly Lane[]): Promise<void> {
    for (const [next, end] of lanes) {
      this.replace([next, end, 'may']);
      this.items.open.add((await this.items.named(next)).workflowId);
    }
    const permission = await this.beat();
    await eachConcurrently(lanes, async ([next, end]) => {
      const retried = this.again.get(next) ?? null;
      const how = await this.items.start(next, retried, permission);
      if (how === 'started') this.replace([next, end, 'open']);
      if (how !== 'exists') return;
      const found = await this.items.ask(next, wasBegun(this.position.begun, next) ? 0 : Infinity);
      // The server takes no further run of a name that belongs to another message, or of one that is completed.
      const isRefused = found.runId === retried || found.end?.outcome === 'conflict';
      // The next look finds any other end.
      if (found.end === null || !isRefused) return;
      await this.pass(next, end, found.end);
      // An earlier run may have started the lane's next item, which may have been deleted since.
      await this.settle(this.position.lanes.filter(([, laneEnd]) => laneEnd === end));
    });
  }
}

/** A signal does not end a start delay (measured, server 1.32.0); to terminate one needs no worker. */
export const closeChunks: BatchActivities['closeChunks'] = async ({ batchId, digest, chunks }) => {
  const { client } = Context.current();
  const ids = chunks.firsts.map((_, number) => chunkWorkflowId(batchId, digest ?? '', number));
  await eachConcurrently(ids, async (id) => {
    await client.workflow.getHandle(id).terminate('its batch has ended').catch(ignoreClosed);
  });
};
