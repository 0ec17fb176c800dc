import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import {
  addLanes,
  applyFacts,
  type BatchBoard,
  isBatchBoard,
  type ItemFact,
  advanceLane,
  markStarting,
  withRound,
} from '../../batch/board';
import { type BatchActivities, type BatchMemo, boardFromMemo } from '../../batch/memo';
import { nextBatchStep } from '../../batch/next-batch-step';
import type { Lane } from '../../batch/started-items';
import { chunkWorkflowId, jobKeyFromWorkflowId } from '../../contract/ids';
import { singleLine } from '../../contract/text';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { cancelWorkflows, ignoreClosedWorkflow } from '../../temporal/workflow-executions';
import { hasGrpcStatus } from '../../temporal/grpc-status';
import { LIST_LAG_MS } from '../../temporal/visibility';
import { currentRun, pollAgainError, serverClock } from '../attempt';
import { BatchItemStore, fetchBatchMemo } from './batch-item-store';

/** The maximum time for which a round starts items. If the worker is lost, no more than the work of this time is repeated. */
const ROUND_MS = 60_000;

/**
 * Every twelfth round describes each follow-up that the list shows as running. While nothing changes, this is about once a
 * minute. While items end, the rounds follow each other faster.
 */
const ROUNDS_PER_CHECK = 12;

/** The number of items of a lane after which the collected facts are applied, so that the next heartbeat records them. */
const FACTS_PER_LANE = 100;

type BlockedItem = NonNullable<BatchBoard['blockedItem']>;

/** The facts that a round has collected. The value is immutable, so each step makes a new one. */
interface RoundFacts {
  readonly memo: BatchMemo;
  readonly board: BatchBoard;
  /** The workflow IDs of the follow-ups that run, from the visibility list and from the facts that the round collected since. */
  readonly runningIds: ReadonlySet<string>;
  /** The first item that can't proceed, and the reason. */
  readonly blockedItem: BlockedItem | null;
}

/** Makes one round: collects facts, applies them to the board, and performs steps until the next round or a report. */
export const runItems: BatchActivities['runItems'] = async ({ chunks }) => {
  const { client, info, cancellationSignal } = Context.current();
  const memo = await fetchBatchMemo();
  const initialBoard = isBatchBoard(info.heartbeatDetails) ? info.heartbeatDetails : boardFromMemo(memo);
  if (memo.stopReason === 'cancelled') return initialBoard;
  const items = new BatchItemStore(client, { ...currentRun(), ...memo, chunks }, initialBoard);
  const serverTime = serverClock();
  const startedAt = serverTime();
  let round = await openRound(items, initialBoard, memo, startedAt);
  for (;;) {
    round = { ...round, memo: await fetchBatchMemo() };
    const now = serverTime();
    const isStartTimeOver = now - startedAt > ROUND_MS || cancellationSignal.aborted;
    const times = { now, activityStartedAt: info.scheduledTimestampMs, isStartTimeOver };
    const { running, board } = await collectRunningItems(items, round, initialBoard);
    round = { ...round, board };
    const step = nextBatchStep(board, round.memo, { ...running, ...times });
    if (step.do === 'add lanes') round = await addNextLanes(items, round, step.count);
    else if (step.do === 'start') round = await startItems(items, round, step.lanes);
    else {
      if (step.do === 'cancel items') await cancelWorkflows(client, round.runningIds);
      // A paused activity must not complete, because the workflow would schedule a new activity that is not paused. The heartbeat
      // throws an error if the activity is paused.
      if (board !== initialBoard || step.do === 'report') await items.recordBoard(board);
      if (step.do === 'report') return board;
      throw pollAgainError(step.waitMs, waitMessage(board));
    }
  }
};

/** Returns the message of the failed attempt. The Web UI and `temporal workflow describe` show this message. */
function waitMessage({ blockedItem }: BatchBoard): string {
  return blockedItem === null
    ? 'the batch continues'
    : `the item ${blockedItem.workflowId} can't proceed: ${blockedItem.reason}`;
}

/** Collects the facts about the running follow-ups and the lanes of the board. */
async function openRound(
  items: BatchItemStore,
  board: BatchBoard,
  memo: BatchMemo,
  now: number,
): Promise<RoundFacts> {
  const isChecked = Context.current().info.attempt % ROUNDS_PER_CHECK === 0;
  // The list may not show yet which items the previous run left running.
  const isNew = now < Date.parse(memo.startedAt) + LIST_LAG_MS;
  const runningIds = await items.listRunning(isChecked, isNew ? (board.startedEarlier?.lanes ?? []) : []);
  return applyLaneFacts(items, { memo, board, runningIds, blockedItem: null }, board.lanes);
}

/**
 * Collects facts about lanes concurrently, and applies the facts in one call. The function repeats this for lanes with many ended
 * items.
 */
async function applyLaneFacts(
  items: BatchItemStore,
  before: RoundFacts,
  lanes: readonly Lane[],
): Promise<RoundFacts> {
  let round = before;
  for (let remainingLanes = lanes; remainingLanes.length > 0;) {
    const facts = new Map<number, ItemFact>();
    const unfinished = new Set<number>();
    await eachConcurrently(remainingLanes, async (lane) => {
      if (await collectFacts(items, round, lane, facts)) unfinished.add(lane.end);
    });
    round = applyFactsToRound(round, facts);
    items.board = round.board;
    remainingLanes = round.board.lanes.filter(({ end }) => unfinished.has(end));
  }
  return round;
}

/** Collects the facts about the next items of a lane. @returns whether the lane may have further items that have ended */
async function collectFacts(
  items: BatchItemStore,
  { board, memo, runningIds }: RoundFacts,
  lane: Lane,
  facts: Map<number, ItemFact>,
): Promise<boolean> {
  let currentLane = lane;
  while (currentLane.next < lane.end) {
    if (currentLane.next - lane.next >= FACTS_PER_LANE) return true;
    const fact = await items.getFact(board, memo, currentLane, runningIds);
    if (fact === null) return false;
    facts.set(currentLane.next, fact);
    const { lane: following, outcome } = advanceLane(currentLane, fact, memo);
    if (outcome === null) return false;
    currentLane = following;
  }
  return false;
}

function applyFactsToRound(round: RoundFacts, facts: ReadonlyMap<number, ItemFact>): RoundFacts {
  const board = applyFacts(round.board, round.memo, facts);
  const runningIds = new Set(round.runningIds);
  let { blockedItem } = round;
  for (const fact of facts.values()) {
    const isForeign = fact.kind === 'running' && !fact.isStartedByBatch;
    if (fact.kind === 'ended' || (isForeign && round.memo.stopReason === 'cancel-running'))
      runningIds.delete(fact.workflowId);
    else runningIds.add(fact.workflowId);
    if (fact.kind === 'unreadable') blockedItem ??= createBlockedItem(fact.workflowId, fact.reason);
  }
  return { ...round, board, runningIds, blockedItem };
}

function createBlockedItem(workflowId: string, reason: string): BlockedItem {
  return { workflowId, reason: singleLine(reason, 300) };
}

/**
 * Returns the number of follow-ups that count against the concurrency, the lanes that must wait, whether the board has changed,
 * and the board with this number.
 */
async function collectRunningItems(
  items: BatchItemStore,
  { board, runningIds, blockedItem }: RoundFacts,
  initialBoard: BatchBoard,
) {
  const running = new Set(runningIds);
  const pending: [lane: Lane, job: string][] = [];
  for (const lane of board.lanes) {
    const { workflowId } = await items.identify(lane.next);
    if (lane.state === 'pending') pending.push([lane, jobKeyFromWorkflowId(workflowId)]);
    else running.add(workflowId);
  }
  const busyJobs = new Set([...running].map(jobKeyFromWorkflowId));
  const busy = pending.filter(([, job]) => busyJobs.has(job));
  const { size: open } = running;
  const roundBoard = withRound(board, { open, blockedItem });
  const busyLanes = new Set(busy.map(([{ end }]) => end));
  return { running: { count: open, busyLanes, hasChanged: roundBoard !== initialBoard }, board: roundBoard };
}

async function addNextLanes(items: BatchItemStore, round: RoundFacts, count: number) {
  const { board, memo } = round;
  const ends: number[] = [];
  for (
    let next = board.cursor;
    ends.length < count && next < memo.startLimit;
    next = ends.at(-1) ?? memo.startLimit
  )
    ends.push(await items.findLaneEnd(next));
  const added = addLanes(board, ends);
  const lanes = added.lanes.slice(board.lanes.length);
  return applyLaneFacts(items, { ...round, board: added }, lanes);
}

/** Starts the next items of lanes. */
async function startItems(items: BatchItemStore, round: RoundFacts, lanes: readonly Lane[]) {
  const board = markStarting(round.board, lanes);
  const permission = await items.recordBoard(board);
  const facts = new Map<number, ItemFact>();
  let { blockedItem } = round;
  await eachConcurrently(lanes, async (lane) => {
    const result = await items.start(lane, permission);
    if (result === 'unknown') return;
    if (result.kind !== 'rejected') facts.set(lane.next, result);
    else
      blockedItem ??= createBlockedItem(
        (await items.identify(lane.next)).workflowId,
        `the item could not be started: ${result.reason}`,
      );
  });
  const started = applyFactsToRound({ ...round, board, blockedItem }, facts);
  const ends = new Set(lanes.map(({ end }) => end));
  const nextLanes = started.board.lanes.filter(({ end, state }) => state === 'pending' && ends.has(end));
  return applyLaneFacts(items, started, nextLanes);
}

/**
 * Terminates the chunks of a batch that has ended. A signal would not help, because it does not end a start delay (Temporal
 * server 1.32.0).
 */
export const closeChunks: BatchActivities['closeChunks'] = async ({ batchId, digest, chunks }) => {
  const { client } = Context.current();
  const ids = chunks.firsts.map((_, number) => chunkWorkflowId(batchId, digest ?? '', number));
  await eachConcurrently(ids, async (id) => {
    const chunk = client.workflow.getHandle(id);
    await chunk.terminate('the batch has ended').catch((error: unknown) => {
      if (hasGrpcStatus(error, 'PERMISSION_DENIED', 'UNAUTHENTICATED'))
        throw ApplicationFailure.nonRetryable('the worker has no permission to terminate workflows');
      ignoreClosedWorkflow(error);
    });
  });
};
