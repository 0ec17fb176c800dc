import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
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
} from '../../core/batch/state';
import { type End, endWithoutReceipt, mayTryAgain } from '../../core/end';
import { chunkWorkflowId } from '../../core/ids';
import { ItemsOfBatch, jobOf } from '../../temporal/batch-items';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { ignoreClosed } from '../../temporal/existing-run';
import { askAgainIn, ownRun, serverClock } from '../attempt';
import { AT_ONCE, BatchOnServer } from './on-server';
import { KeptPosition } from './position';

/** A look while items end, and one while nothing happens: a live starter shows an end within ten seconds. */
const BUSY_WAIT_MS = 1_000;
const QUIET_WAIT_MS = 5_000;

/** Items that are started by one permission of the server. */
const GROUP = 10;

/** How long one attempt starts items before it asks for its next one, so that a lost worker costs little. */
const ATTEMPT_MS = 60_000;

/** After so long a list shows what was open before the batch's start. */
const LIST_LAG_MS = 60_000;

/** Of so many looks one asks for what the list shows as open: about once a minute. */
const LOOKS_PER_CHECK = 12;

/**
 * A batch costs the server at most three events an item: a round has seven, and comes with news only within. The first ones
 * come soon, because people look at what they have just started; those that follow, each minute.
 */
const EVENTS_A_ROUND = 7;
const EVENTS_AN_ITEM = 2;
const FREE_ROUNDS = 10;
const FIRST_ROUND_MS = 2_000;
const ROUND_MS = 60_000;

export const runItems: BatchActivities['runItems'] = async (input) => {
  const { info } = Context.current();
  const kept: unknown = info.heartbeatDetails;
  const work = new Work(input, await readMemo(), isPosition(kept) ? kept : input.position);
  if (!work.isCancelled()) await work.run();
  if (work.isOver()) return work.position;
  await work.kept.keep();
  throw askAgainIn(work.kept.hasChanged ? BUSY_WAIT_MS : QUIET_WAIT_MS, 'the batch goes on');
};

/** What is to be done, as the workflow has written it down. */
async function readMemo(): Promise<BatchMemo> {
  const { workflowId, runId } = ownRun();
  const { memo, raw } = await Context.current().client.workflow.getHandle(workflowId, runId).describe();
  if (raw.workflowExtendedInfo?.lastResetTime)
    throw ApplicationFailure.nonRetryable('somebody has reset the batch');
  const own = batchMemo(memo);
  if (own === null) throw askAgainIn(QUIET_WAIT_MS, "the memo of the batch can't be read");
  return own;
}

/** One look at a batch: what has ended, and what can begin. */
class Work {
  private readonly info = Context.current().info;
  private readonly items: ItemsOfBatch;
  private readonly server: BatchOnServer;
  readonly kept: KeptPosition;
  /** The workflow id of each lane's next item, by the lane's end. */
  private readonly ids = new Map<number, string>();
  /** The runs that are retried, by the number of the item; null for one that is gone. */
  private readonly again = new Map<number, string | null>();
  /** Lanes whose job has a later item open, by their ends: somebody else has started it by its own name. */
  private readonly blocked = new Set<number>();
  /** The next item lies beyond the bound: the workflow must write down that it may be begun. */
  private needsRound = false;

  constructor(
    private readonly input: RunItemsInput,
    private memo: BatchMemo,
    position: Position,
  ) {
    const { client } = Context.current();
    const { batchId, digest, items } = memo;
    const { workflowId, runId } = ownRun();
    this.kept = new KeptPosition(position);
    const { chunks } = input;
    this.items = new ItemsOfBatch(client, { workflowId, runId, batchId, digest, items, chunks });
    this.server = new BatchOnServer(client, { batchId, runId }, this.items, () => this.kept.beatInTime());
  }

  get position(): Position {
    return this.kept.now;
  }

  async run(): Promise<void> {
    await this.server.list();
    if (this.info.attempt % LOOKS_PER_CHECK === 0) await this.server.checkOpen();
    if (serverClock()() < Date.parse(this.memo.startedAt) + LIST_LAG_MS)
      await this.server.addOpen(this.position.begun?.lanes ?? []);
    await this.settle(this.position.lanes);
    if (this.memo.ending === 'cancel-running') await this.server.cancel(this.server.open);
    await this.start();
  }

  /** Whether the workflow has something to do. */
  isOver(): boolean {
    const { position, memo, input } = this;
    const { lanes, cursor, settled } = position;
    const isDone = lanes.length === 0 && cursor >= memo.items;
    const isIdle = !this.mayStart() && this.kept.held === 0;
    if (memo.ending === 'cancel-running') return isIdle && this.server.open.size === 0;
    if (isDone || isIdle || this.needsRound || this.isCancelled()) return true;
    if (memo.ending === null && isBeyondTolerance(memo, position)) return true;
    const mayTell = EVENTS_A_ROUND * (input.rounds - FREE_ROUNDS) <= EVENTS_AN_ITEM * settled;
    const changed = cursor !== input.position.cursor || settled !== input.position.settled;
    const dueMs = Math.min(FIRST_ROUND_MS * 2 ** input.rounds, ROUND_MS);
    return changed && mayTell && Date.now() - this.info.scheduledTimestampMs > dueMs;
  }

  /** The workflow waits for the position, whatever is open. */
  isCancelled(): boolean {
    return this.memo.ending === 'cancelled';
  }

  private mayStart(): boolean {
    const { memo, position } = this;
    return !memo.paused && memo.ending === null && !isBeyondTolerance(memo, position);
  }

  /** Follow-ups of the batch that run and are in no lane: somebody has retried them, or an earlier run has left them. */
  private others(): number {
    const held = new Set(this.position.lanes.map(([, end]) => this.ids.get(end)));
    return [...this.server.open].filter((id) => !held.has(id)).length;
  }

  /** Moves lanes on past what has ended. */
  private async settle(lanes: readonly Lane[]): Promise<void> {
    await eachConcurrently(lanes, AT_ONCE, async ([first, end, was]) => {
      let state = was;
      for (let next = first; next < end; next += 1) {
        const how = await this.standing(next, end, state);
        if (typeof how === 'string') {
          if (how !== state) this.kept.replace([next, end, how]);
          return;
        }
        this.kept.pass(next, end, this.ids.get(end) ?? '', how);
        state = 'free';
      }
    });
    const open = this.kept.held + this.others();
    if (open !== this.position.open) this.kept.change({ open });
  }

  /** Whether an item has begun or may begin; its end, where it has ended. */
  private async standing(item: number, laneEnd: number, state: Lane[2]): Promise<'free' | 'open' | End> {
    const { workflowId } = await this.items.named(item);
    this.ids.set(laneEnd, workflowId);
    const isCancelled = this.memo.ending === 'cancel-running';
    if (this.server.open.has(workflowId) && !isCancelled) return 'open';
    if (state === 'free' && !wasBegun(this.position.begun, item)) return 'free';
    const before = state === 'free' ? await this.server.endBefore(workflowId) : undefined;
    if (before && !mayTryAgain(before, this.memo.again)) return before;
    const { end, runId, startedAt, batchId } = await this.server.ask(item);
    if (end === null) {
      if (!isCancelled) return 'open';
      if (batchId !== this.memo.batchId) return endWithoutReceipt('left-running');
      // The list may not show it yet.
      await this.server.cancel([workflowId]);
      return 'open';
    }
    const isGone = end.outcome === 'gone';
    if (isGone && state === 'may') return 'free';
    if (!mayTryAgain(end, this.memo.again)) return end;
    // Each follow-up gets one more run by a retry: what has begun since the batch has is its own.
    const isFromBefore = isGone
      ? state === 'free'
      : (startedAt ?? Infinity) < Date.parse(this.memo.startedAt);
    if (!isFromBefore) return end;
    this.again.set(item, runId ?? null);
    return 'free';
  }

  /** Starts what can begin, group by group. */
  private async start(): Promise<void> {
    const until = performance.now() + ATTEMPT_MS;
    const { cancellationSignal } = Context.current();
    while (this.mayStart() && performance.now() < until && !cancellationSignal.aborted) {
      await this.deal();
      const ready = await this.readyLanes();
      this.memo = await readMemo();
      const free = this.memo.concurrency - this.kept.held - this.others();
      const group = ready.slice(0, Math.max(0, free));
      if (!this.mayStart() || group.length === 0) return;
      await this.startGroup(group);
    }
  }

  /** Opens lanes for the places that are free. */
  private async deal(): Promise<void> {
    const { items, concurrency, bound } = this.memo;
    for (;;) {
      const { lanes, cursor } = this.position;
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
      this.kept.change({ lanes: [...lanes, ...dealt], cursor: dealt.at(-1)?.[1] ?? cursor });
      await this.settle(dealt);
    }
  }

  /** The next lanes whose next item may begin, a group of them. */
  private async readyLanes(): Promise<Lane[]> {
    const busy = new Set([...this.server.open].map(jobOf));
    const ready: Lane[] = [];
    for (const lane of this.position.lanes) {
      const [next, end, state] = lane;
      if (ready.length === GROUP) break;
      if (state !== 'free' || this.blocked.has(end) || busy.has(jobOf(this.ids.get(end) ?? ''))) continue;
      if (next >= this.memo.bound) this.needsRound = true;
      else if (await this.server.isOpenLater(lane)) this.blocked.add(end);
      else ready.push(lane);
    }
    return ready;
  }

  private async startGroup(lanes: readonly Lane[]): Promise<void> {
    for (const [next, end] of lanes) this.kept.replace([next, end, 'may']);
    const permission = await this.kept.beat();
    await eachConcurrently(lanes, GROUP, async ([next, end]) => {
      const retried = this.again.get(next) ?? null;
      const how = await this.server.start(next, this.info.taskQueue, retried, permission);
      if (how === 'started') this.kept.replace([next, end, 'open']);
      if (how !== 'exists') return;
      const isFirst = !wasBegun(this.position.begun, next);
      const found = await this.server.ask(next, isFirst ? Infinity : 0);
      // The server takes no further run of a name that belongs to another message, or of one that is completed.
      const isRefused = this.again.has(next) && found.runId === this.again.get(next);
      const { workflowId } = await this.items.named(next);
      if (found.end !== null && (isRefused || found.end.outcome === 'conflict'))
        this.kept.pass(next, end, workflowId, found.end);
      // Any other end is found by the next look.
      else this.server.open.add(workflowId);
    });
  }
}

/** A signal does not end a start delay (measured, server 1.32.0); to terminate one needs no worker. */
export const closeChunks: BatchActivities['closeChunks'] = async ({ batchId, digest, chunks }) => {
  const { client } = Context.current();
  const ids = chunks.firsts.map((_, number) => chunkWorkflowId(batchId, digest ?? '', number));
  await eachConcurrently(ids, AT_ONCE, async (id) => {
    await client.workflow.getHandle(id).terminate('its batch has ended').catch(ignoreClosed);
  });
};
