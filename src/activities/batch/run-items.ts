import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import {
  addLanes,
  applyFacts,
  type BatchBoard,
  isBatchBoard,
  type ItemFact,
  laneAfter,
  markStarting,
  withRound,
} from '../../batch/board';
import { type BatchActivities, type BatchMemo, boardOfMemo } from '../../batch/memo';
import { nextBatchStep } from '../../batch/next-batch-step';
import type { Lane } from '../../batch/started-items';
import { chunkWorkflowId, jobOf } from '../../contract/ids';
import { singleLine } from '../../contract/text';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { cancelWorkflows, ignoreClosedWorkflow } from '../../temporal/existing-run';
import { hasGrpcStatus } from '../../temporal/grpc-status';
import { LIST_LAG_MS } from '../../temporal/lists';
import { currentRun, pollAgainIn, serverClock } from '../attempt';
import { ItemsOnServer, readMemo } from './on-server';

/** For so long a round starts items: if its worker is lost, at most so much work is repeated. */
const ROUND_MS = 60_000;

/** One of so many rounds describes the follow-ups that the list shows as running: about once a minute. */
const ROUNDS_PER_CHECK = 12;

/** After so many items of a lane, the facts are applied, so that the next heartbeat records them. */
const FACTS_PER_LANE = 100;

type Wait = NonNullable<BatchBoard['waitsFor']>;

/** The facts of a round so far. It never changes: each step makes a new one. */
interface Round {
  readonly memo: BatchMemo;
  readonly board: BatchBoard;
  /** The running follow-ups by the visibility list, without the items that have ended since. */
  readonly listed: ReadonlySet<string>;
  /** The lanes, by their ends, whose job runs a later item that another client started. */
  readonly laterRunning: ReadonlyMap<number, Wait>;
  /** The first item that can't proceed. */
  readonly waitsFor: Wait | null;
}

/** Makes one round: collects facts, applies them to the board, and performs steps until the next round or a report. */
export const runItems: BatchActivities['runItems'] = async ({ chunks }) => {
  const { client, info, cancellationSignal } = Context.current();
  const memo = await readMemo();
  const first = isBatchBoard(info.heartbeatDetails) ? info.heartbeatDetails : boardOfMemo(memo);
  if (memo.ending === 'cancelled') return first;
  const items = new ItemsOnServer(client, { ...currentRun(), ...memo, chunks }, first);
  const serverTime = serverClock();
  const startedAt = serverTime();
  let round = await openRound(items, first, memo, startedAt);
  for (;;) {
    round = { ...round, memo: await readMemo() };
    const now = serverTime();
    const isRoundOver = now - startedAt > ROUND_MS || cancellationSignal.aborted;
    const times = { now, activityStartedAt: info.scheduledTimestampMs, isRoundOver };
    const { running, board } = await runningItems(items, round, first);
    round = { ...round, board };
    const step = nextBatchStep(board, round.memo, { ...running, ...times });
    if (step.do === 'add lanes') round = await addNextLanes(items, round, step.count);
    else if (step.do === 'start') round = await startItems(items, round, step.lanes);
    else {
      if (step.do === 'cancel items') await cancelWorkflows(client, round.listed);
      // If the activity is paused, its end would let another activity follow, which is not paused.
      if (board !== first || step.do === 'report') await items.record(board);
      if (step.do === 'report') return board;
      throw pollAgainIn(step.waitMs, waitMessage(board));
    }
  }
};

/** The message of the failed attempt, which the Web UI and `temporal workflow describe` show. */
function waitMessage({ waitsFor }: BatchBoard): string {
  return waitsFor === null
    ? 'the batch continues'
    : `the batch waits for ${waitsFor.workflowId}: ${waitsFor.reason}`;
}

/** Collects the facts about the running follow-ups and the lanes of the board. */
async function openRound(
  items: ItemsOnServer,
  board: BatchBoard,
  memo: BatchMemo,
  now: number,
): Promise<Round> {
  const isChecked = Context.current().info.attempt % ROUNDS_PER_CHECK === 0;
  // The list may not show yet which items the run before left running.
  const isNew = now < Date.parse(memo.startedAt) + LIST_LAG_MS;
  const listed = await items.listRunning(isChecked, isNew ? (board.startedEarlier?.lanes ?? []) : []);
  const round = { memo, board, listed, laterRunning: new Map<number, Wait>(), waitsFor: null };
  return settle(items, round, board.lanes);
}

/** Collects facts about lanes concurrently, and applies them in one call; again for a lane with many ended items. */
async function settle(items: ItemsOnServer, before: Round, lanes: readonly Lane[]): Promise<Round> {
  let round = before;
  for (let left = lanes; left.length > 0;) {
    const facts = new Map<number, ItemFact>();
    const unfinished = new Set<number>();
    await eachConcurrently(left, async (lane) => {
      if (await collectFacts(items, round, lane, facts)) unfinished.add(lane.end);
    });
    round = withFacts(round, facts);
    items.board = round.board;
    left = round.board.lanes.filter(({ end }) => unfinished.has(end));
  }
  return round;
}

/** @returns whether the lane may have further items that have ended */
async function collectFacts(
  items: ItemsOnServer,
  { board, memo, listed }: Round,
  lane: Lane,
  facts: Map<number, ItemFact>,
): Promise<boolean> {
  let after = lane;
  while (after.next < lane.end) {
    if (after.next - lane.next >= FACTS_PER_LANE) return true;
    const fact = await items.fact(board, memo, after, listed);
    if (fact === null) return false;
    facts.set(after.next, fact);
    const { lane: following, outcome } = laneAfter(after, fact, memo);
    if (outcome === null) return false;
    after = following;
  }
  return false;
}

function withFacts(round: Round, facts: ReadonlyMap<number, ItemFact>): Round {
  const board = applyFacts(round.board, round.memo, facts);
  const listed = new Set(round.listed);
  let { waitsFor } = round;
  for (const fact of facts.values()) {
    const isForeign = fact.kind === 'running' && !fact.isOfBatch;
    if (fact.kind === 'ended' || (isForeign && round.memo.ending === 'cancel-running'))
      listed.delete(fact.workflowId);
    else listed.add(fact.workflowId);
    if (fact.kind === 'unreadable') waitsFor ??= waitFor(fact.workflowId, fact.reason);
  }
  return { ...round, board, listed, waitsFor };
}

function waitFor(workflowId: string, reason: string): Wait {
  return { workflowId, reason: singleLine(reason, 300) };
}

/** The follow-ups that count against the concurrency, and the board that shows them. */
async function runningItems(
  items: ItemsOnServer,
  { board, listed, laterRunning, waitsFor }: Round,
  first: BatchBoard,
) {
  const running = new Set(listed);
  const pending: [lane: Lane, job: string][] = [];
  for (const lane of board.lanes) {
    const { workflowId } = await items.identify(lane.next);
    if (lane.state === 'pending') pending.push([lane, jobOf(workflowId)]);
    else running.add(workflowId);
  }
  const busyJobs = new Set([...running].map(jobOf));
  const busy = pending.filter(([{ end }, job]) => busyJobs.has(job) || laterRunning.has(end));
  const { size: open } = running;
  const [blocked = null] = open === 0 ? laterRunning.values() : [];
  const shown = withRound(board, { open, waitsFor: waitsFor ?? blocked });
  const busyLanes = new Set(busy.map(([{ end }]) => end));
  return { running: { count: open, busyLanes, hasChanged: shown !== first }, board: shown };
}

async function addNextLanes(items: ItemsOnServer, round: Round, count: number) {
  const { board, memo } = round;
  const ends: number[] = [];
  for (let next = board.cursor; ends.length < count && next < memo.bound; next = ends.at(-1) ?? memo.bound)
    ends.push(await items.findLaneEnd(next));
  const added = addLanes(board, ends);
  const lanes = added.lanes.slice(board.lanes.length);
  return settle(items, { ...round, board: added }, lanes);
}

/** Starts the next items of lanes, unless another client runs a later item of a job: then the next step is decided again. */
async function startItems(items: ItemsOnServer, round: Round, lanes: readonly Lane[]) {
  const later = await items.lanesWithLaterRunning(lanes);
  if (later.length > 0) {
    const laterRunning = new Map(round.laterRunning);
    for (const { next, end } of later)
      laterRunning.set(
        end,
        waitFor((await items.identify(next)).workflowId, 'another client started a later item of its job'),
      );
    return { ...round, laterRunning };
  }
  const board = markStarting(round.board, lanes);
  const permission = await items.record(board);
  const facts = new Map<number, ItemFact>();
  let { waitsFor } = round;
  await eachConcurrently(lanes, async (lane) => {
    const result = await items.start(lane, board, permission);
    if (result === 'unknown') return;
    if (result.kind !== 'rejected') facts.set(lane.next, result);
    else
      waitsFor ??= waitFor(
        (await items.identify(lane.next)).workflowId,
        `the Temporal server rejects its start: ${result.reason}`,
      );
  });
  const started = withFacts({ ...round, board, waitsFor }, facts);
  const ends = new Set(lanes.map(({ end }) => end));
  const passed = started.board.lanes.filter(({ end, state }) => state === 'pending' && ends.has(end));
  return settle(items, started, passed);
}

/** Terminates the chunks of a batch that has ended. A signal does not end a start delay (measured, server 1.32.0). */
export const closeChunks: BatchActivities['closeChunks'] = async ({ batchId, digest, chunks }) => {
  const { client } = Context.current();
  const ids = chunks.firsts.map((_, number) => chunkWorkflowId(batchId, digest ?? '', number));
  await eachConcurrently(ids, async (id) => {
    const chunk = client.workflow.getHandle(id);
    await chunk.terminate('its batch has ended').catch((error: unknown) => {
      if (hasGrpcStatus(error, 'PERMISSION_DENIED', 'UNAUTHENTICATED'))
        throw ApplicationFailure.nonRetryable('the worker may not terminate workflows');
      ignoreClosedWorkflow(error);
    });
  });
};
