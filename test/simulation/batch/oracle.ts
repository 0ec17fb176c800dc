import type { JobLockHolder } from '../../../src/contract/send-result';
import { isMaxFailuresExceeded } from '../../../src/batch/board';
import { type BatchMemo, CHUNK_WORKFLOW, MEMO_BATCH } from '../../../src/batch/memo';
import { jobKeyFromWorkflowId } from '../../../src/contract/ids';
import { JOB_LOCK_WORKFLOW, MEMO_JOB_LOCK_HOLDER, MEMO_RECEIPT } from '../../../src/contract/names';
import type { Request } from '../agent-service';
import { changesInEffect } from '../oracle/case';
import { fromPayload } from '../temporal/history';
import type { Run } from '../temporal/run';
import type { PerformedOperation } from '../world';
import type { BatchOperation } from './plan';
import { BATCH_WORKFLOW_ID, type BatchWorld } from './world';

/** Operations that may run an item again, or remove it, after the batch has counted it. */
const ITEM_OPERATIONS: ReadonlySet<string> = new Set([
  'retry item',
  'terminate item',
  'cancel item',
  'foreign',
]);

/** The maximum number of items in a group, and the time in which a group starts: its permission and a slow call. */
const START_GROUP_SIZE = 10;
const GROUP_MS = 15_000;
/** The time for which a batch waits for the request to cancel it. */
const CANCEL_REQUEST_MS = 5_000;
/** The time from the release of a job lock to the end of its follow-up, with slow reports. */
const LOCK_MS = 20_000;
/** The heartbeat timeout of the activity `runItems`. */
const HEARTBEAT_MS = 30_000;
/** The maximum age of the visibility list that an attempt of `runItems` uses. */
const ATTEMPT_MS = 60_000;

const DISTURBING_OPERATIONS: ReadonlySet<BatchOperation['kind']> = new Set([
  ...(['kill', 'freeze', 'stop', 'lose', 'wrong clock', 'server unavailable', 'reset', 'terminate'] as const),
]);

/** Returns one sentence for each violation of a guarantee in a world with a batch; empty if the world satisfies all guarantees. */
export function findBatchViolations(world: BatchWorld): string[] {
  return [...world.failures, ...RULES.flatMap((rule) => [...rule(world)])];
}

const RULES: readonly ((world: BatchWorld) => Iterable<string>)[] = [
  /**
   * A message that may have been processed is sent again only in three cases: the batch can't know the earlier run, another client started
   * the later run, or a retry includes unknown deliveries.
   */
  function* neverTwice(world) {
    for (const name of world.names) {
      const runs = world.runs.filter(({ workflowId }) => workflowId === name);
      const sent = runs.flatMap((run) =>
        world.requests.flatMap((each) =>
          each.runId === run.runId && mayBeProcessed(each) ? [{ run, at: each.firstByteAt ?? 0 }] : [],
        ),
      );
      for (const [index, { run, at }] of sent.entries()) {
        const before = sent
          .slice(0, index)
          .filter(
            (each) => promptOf(each.run) === promptOf(run) && !isEarlierRunUnknown(world, each.run, run),
          );
        if (before.length === 0 || isStartedByAnotherClient(run)) continue;
        const includes = world
          .performedOfKind('retry')
          .some((retry) => retry.operation.includeUnknown && retry.at < at);
        if (!includes || before.some((each) => isAccepted(world, each.run)))
          yield `${name}: ${run.runId} sends the message again, but ${before.map((each) => each.run.runId).join(', ')} may have sent it`;
      }
    }
  },
  /**
   * The number of running items never exceeds the concurrency, and items for one job run one after another. An item that a client retries
   * counts from the time at which the batch must know it.
   */
  function* respectsConcurrencyAndJobOrder(world) {
    for (const { run, batch } of world.starts) {
      const at = run.startedAt;
      const startedRuns = world.starts.map((start) => start.run);
      const open = startedRuns.filter((each) => each.startedAt <= at && chainEndedAt(world, each) > at);
      open.push(...runningRetries(world, at));
      const memos = changesInEffect(memosOf(batch), at - GROUP_MS, at);
      const most = Math.max(...memos.map(({ memo }) => memo.concurrency));
      if (open.length > most)
        yield `${run.runId} is running item number ${open.length}, but the concurrency is ${most}`;
      const other = open.find(
        (each) =>
          each !== run && jobKeyFromWorkflowId(each.workflowId) === jobKeyFromWorkflowId(run.workflowId),
      );
      if (other !== undefined) yield `${run.runId} starts while ${other.runId} runs for the same job`;
    }
  },
  /** With `whenActive: wait`, a follow-up holds the job lock from its baseline read to its end. */
  function* oneFollowUpOfAJobHoldsItsLock(world) {
    if (world.plan.request.whenActive !== 'wait') return;
    for (const { number, point, runId, requestedAt, firstByteAt } of world.requests) {
      const run = world.runs.find((each) => each.runId === runId);
      const at = point === 'post' ? (firstByteAt ?? Infinity) : requestedAt;
      // An activity may continue after the end of its run. A poll may be in progress while the lock is released.
      if (run === undefined || at > run.closedAt || (point !== 'post' && point !== 'baseline')) continue;
      if (!locksOf(world, run).some((lock) => lock.startedAt <= at && lock.closedAt >= at))
        yield `${run.workflowId}: request ${number} of ${runId} was made without the job lock`;
    }
    if (isDisturbed(world) || world.performedOfKind('terminate item').length > 0) return;
    for (const run of world.runs.filter(({ workflowId }) => world.names.includes(workflowId)))
      for (const lock of locksOf(world, run))
        if (!run.isOpen && lock.isOpen) yield `${run.runId} has ended, but still holds the job lock`;
        else if (lock.closedAt < chainEndedAt(world, run) - LOCK_MS)
          yield `${run.runId} released the job lock before its end`;
  },
  /** After a 429 with `Retry-After`, a worker makes no POST for the project until the cool-down is over. */
  function* respectsCooldown(world) {
    if (isDisturbed(world)) return;
    for (const requests of world.requestsOfProjects) {
      const posts = requests.filter(({ point }) => point === 'post');
      for (const { answer, retryAfter, receivedAt, worker } of posts) {
        if (answer !== 'http_429' || receivedAt === null || retryAfter === null) continue;
        // A POST whose send permission was requested before the 429 is made.
        const [from, to] = [receivedAt + GROUP_MS, receivedAt + Number(retryAfter) * 1_000];
        const post = posts.find(
          (each) => each.worker === worker && each.requestedAt > from && each.requestedAt < to,
        );
        if (post !== undefined)
          yield `POST ${post.number} of ${post.runId} was made ${to - post.requestedAt} ms before the end of a cool-down`;
      }
    }
  },
  /** A run of the batch starts the items for one job in file order. */
  function* startsInFileOrder(world) {
    const { starts, names } = world;
    const latest = new Map<string, number>();
    for (const { run, batch } of starts) {
      const key = `${batch.start.firstRunId} ${batch.isReset ? batch.runId : ''} ${jobKeyFromWorkflowId(run.workflowId)}`;
      const number = names.indexOf(run.workflowId);
      const previous = latest.get(key) ?? -1;
      if (number < previous || (number === previous && !isDeletedWhileStarting(world, run.workflowId)))
        yield `item ${number} starts after item ${latest.get(key) ?? 0} of the same job`;
      latest.set(key, number);
    }
  },
  /** No item starts after more items failed than `maxFailures`. */
  function* startsNothingBeyondMaxFailures({ starts }) {
    for (const { run, memo, kept } of starts)
      if (isMaxFailuresExceeded(memo, memo) || (kept !== null && isMaxFailuresExceeded(memo, kept)))
        yield `${run.runId} starts, although more items failed than maxFailures`;
  },
  /** No item starts after the batch has ended, or after its activity was cancelled. Without faults, the cancellation of a batch counts at once. */
  function* startsNothingAfterItsEnd(world) {
    const cancels = isDisturbed(world) ? [] : world.performedOfKind('cancel');
    for (const { run, batch } of world.starts) {
      const cancelRequests = batch.events.filter(({ type }) => type === 'ActivityTaskCancelRequested');
      const ends = [...cancelRequests, ...cancels.filter((each) => each.run === batch)].map(({ at }) => at);
      const late = run.startedAt - Math.min(...ends, batch.closedAt) - GROUP_MS;
      if (late > 0) yield `${run.runId} starts ${late} ms after the last permission of its batch expired`;
    }
  },
  /** While the batch is paused, only items of the group that was starting may start. */
  function* startsNothingWhilePaused(world) {
    for (const batch of world.runs.filter(isBatch)) {
      const memos = memosOf(batch);
      for (const [index, { at, memo }] of memos.entries()) {
        if (!memo.isPaused || memos[index - 1]?.memo.isPaused === true) continue;
        const until = memos.slice(index).find((each) => !each.memo.isPaused)?.at ?? Infinity;
        const inBetween = world.starts.filter(
          (each) => each.batch === batch && each.run.startedAt > at && each.run.startedAt < until,
        );
        // A process that is frozen before it requests its permission still receives it until the heartbeat timeout.
        const lateAt = at + GROUP_MS + (isDisturbed(world) ? HEARTBEAT_MS : 0);
        const late = inBetween.find(({ run }) => run.startedAt > lateAt);
        if (late !== undefined) yield `${late.run.runId} starts ${late.run.startedAt - at} ms after a pause`;
        if (inBetween.length > START_GROUP_SIZE)
          yield `${inBetween.length} items start while ${batch.runId} is paused, but a group has at most ${START_GROUP_SIZE}`;
      }
    }
  },
  /** If a batch is cancelled with its running items, each running item receives the request to cancel it. */
  function* cancelReachesRunningItems(world) {
    const ends = [...world.performedOfKind('reset'), ...world.performedOfKind('terminate')];
    for (const { operation, endedAt: cancelledAt, failed, at } of world.performedOfKind('cancel')) {
      // A batch that is reset or terminated soon afterwards may not have cancelled its items.
      if (!operation.cancelRunning || failed || ends.some((each) => happensSoonAfter(cancelledAt, each)))
        continue;
      for (const { run, batch } of world.starts) {
        // The batch also cancels items that the visibility list did not show to the client.
        const isOpen = run.startedAt < at && run.closedAt > Math.max(cancelledAt, batch.closedAt);
        if (isOpen && !run.events.some(({ type }) => type === 'WorkflowExecutionCancelRequested'))
          yield `${run.runId} was running when the batch was cancelled with its running items, but was not cancelled`;
      }
    }
  },
  /** A cancelled batch has the status cancelled. The status would be failed if the batch ended before the request to cancel it arrived. */
  function* isShownAsCancelled(world) {
    if (isDisturbed(world) || world.plan.paceMs > CANCEL_REQUEST_MS) return;
    for (const { runId, end } of world.runs.filter(isBatch))
      if (end.failure?.canceledFailureInfo) yield `${runId} was cancelled, but has the status failed`;
  },
  /** A batch that ends closes its chunks. A terminated batch leaves its chunks to the next run. */
  function* closesItsChunks(world) {
    const { latest } = world;
    if (latest === undefined || latest.isOpen || latest.status === 'WorkflowExecutionTerminated') return;
    // A client that stores chunks while the batch ends also leaves them open.
    const starters = [...world.performedOfKind('start'), ...world.performedOfKind('terminate')];
    if (starters.some((each) => each.run !== undefined && happensSoonAfter(latest.closedAt, each))) return;
    for (const run of world.runs)
      if (run.start.workflowType === CHUNK_WORKFLOW && run.isOpen)
        yield `the chunk ${run.workflowId} is still open after the end of the batch`;
  },
  /** A completed batch reports and counts one outcome for each item. */
  function* countsEachItem({ finalReport, names, plan, deleted }) {
    const { memo, state } = finalReport?.batch ?? {};
    if (!finalReport || !memo) return;
    const { ends } = finalReport;
    const counts = { ...memo.byStatus, ...memo.byFailure };
    const counted = Object.values(counts).reduce((sum, times) => sum + times, 0);
    if (counted !== memo.ended || memo.ended > names.length)
      yield `${memo.ended} items ended and ${counted} were counted, but the batch has ${names.length} items`;
    if (new Set(ends.map(({ workflowId }) => workflowId)).size < ends.length)
      yield 'the batch reports two outcomes for one item';
    if (state !== 'completed') return;
    if (memo.ended !== names.length || ends.length !== names.length)
      yield `the batch is completed, but ${memo.ended} of ${names.length} items ended, and ${ends.length} outcomes were reported`;
    const isForgotten = plan.retentionMs !== null || deleted.size > 0;
    if (isForgotten || plan.operations.some(({ operation }) => ITEM_OPERATIONS.has(operation.kind))) return;
    const outcomes: Record<string, number> = {};
    for (const { outcome } of ends) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    const [total, listed] = [counts, outcomes].map((each) => JSON.stringify(Object.entries(each).sort()));
    if (total !== listed) yield `the batch counted ${total}, but the results are ${listed}`;
  },
  /** An item whose message was processed has neither the delivery `not-sent` nor `rejected`. */
  function* outcomesMatchJournal({ finalReport, requests, runs }) {
    for (const { workflowId, delivery } of finalReport?.ends ?? []) {
      const run = runs.findLast((each) => each.workflowId === workflowId);
      const isSent = requests.some(({ runId, processedAt }) => runId === run?.runId && processedAt !== null);
      if (isSent && (delivery === 'not-sent' || delivery === 'rejected'))
        yield `the delivery of ${workflowId} is ${delivery}, but its message was processed`;
    }
  },
  /** A batch has at most three history events per item and a fixed number per start, unless operators interrupt it. */
  function* historyIsBounded({ runs, names, plan }) {
    if (plan.operations.length > 0) return;
    const batches = runs.filter(isBatch);
    const events = batches.reduce((sum, run) => sum + run.events.length, 0);
    const times = batches.filter(isFirst).length;
    if (events > times * (120 + 3 * names.length))
      yield `the batch has ${events} history events for ${names.length} items`;
  },
];

function isDisturbed({ plan }: BatchWorld): boolean {
  return plan.operations.some(({ operation }) => DISTURBING_OPERATIONS.has(operation.kind));
}

function happensSoonAfter(moment: number, { at }: PerformedOperation<BatchOperation>): boolean {
  return at >= moment - GROUP_MS && at <= moment + HEARTBEAT_MS;
}

function mayBeProcessed({ point, firstByteAt, answer }: Request): boolean {
  return point === 'post' && firstByteAt !== null && !/^http_4(29|22)$/.test(answer ?? '');
}

function promptOf({ start }: Run): unknown {
  return (fromPayload(start.input[0]) as { readonly prompt?: string } | undefined)?.prompt;
}

/** Whether another client started the run, independently of the batch. */
function isStartedByAnotherClient({ start }: Run): boolean {
  return start.requester?.by === 'client' && !start.requester.requestId.startsWith('retry of ');
}

/** Running items of the batch that a client retried so long before `at` that the batch must know them. */
function runningRetries(world: BatchWorld, at: number): Run[] {
  const before = at - world.plan.listLagMs - HEARTBEAT_MS - GROUP_MS - ATTEMPT_MS;
  return world.runs.filter(
    (run) =>
      world.names.includes(run.workflowId) &&
      isFirst(run) &&
      run.start.requester?.by === 'client' &&
      run.start.searchAttributes.FollowUpBatch !== undefined &&
      run.startedAt < before &&
      chainEndedAt(world, run) > at,
  );
}

/** Whether the batch could not know an earlier run, because the Temporal server no longer had the batch or the run. */
function isEarlierRunUnknown(world: BatchWorld, before: Run, run: Run): boolean {
  if (isStartedByAnotherClient(before) && isForgotten(world, before, run.startedAt)) return true;
  const batchStart = world.starts.find((start) => start.run === run)?.batch.start;
  const batches = world.runs.filter(isBatch);
  // After a reset or a termination of the batch, only the item itself shows that it was started, and an operator deleted the item.
  const hasLostBoard = batches.some(
    ({ isReset, status }) => isReset || status === 'WorkflowExecutionTerminated',
  );
  const isDeleted = [...world.deleted.keys()].some(
    (each) => each.start.firstRunId === before.start.firstRunId,
  );
  if (isDeleted && (hasLostBoard || isDeletedWhileStarting(world, run.workflowId))) return true;
  const ownIndex = batches.findIndex(({ runId }) => runId === batchStart?.firstRunId);
  const earlierBatches = batches.slice(0, ownIndex + 1);
  // A start that found none of the earlier runs started the batch from the beginning.
  const newStart = earlierBatches.findLast((start, index) =>
    earlierBatches.slice(0, index).every((each) => isForgotten(world, each, start.startedAt)),
  );
  return newStart !== undefined && before.startedAt < newStart.startedAt;
}

/**
 * Whether an operator deleted an item so soon after its start that the batch was still starting the item. A batch starts such an item
 * again, because a worker may also have stopped before it started the item.
 */
function isDeletedWhileStarting({ deleted }: BatchWorld, workflowId: string): boolean {
  return [...deleted].some(
    ([run, at]) => run.workflowId === workflowId && at - run.startedAt <= HEARTBEAT_MS + GROUP_MS,
  );
}

function isForgotten({ plan, deleted }: BatchWorld, run: Run, at: number): boolean {
  return run.closedAt + (plan.retentionMs ?? Infinity) <= at || (deleted.get(run) ?? Infinity) <= at;
}

/** Whether the receipt of a run shows the verdict `accepted`, and no later run has replaced the receipt. */
function isAccepted({ runs }: BatchWorld, { memo, workflowId, runId }: Run): boolean {
  const receipt = fromPayload(memo[MEMO_RECEIPT]) as
    { readonly delivery?: { readonly verdict: string } } | undefined;
  const latest = runs.findLast((each) => each.workflowId === workflowId && each.runId !== runId);
  return receipt?.delivery?.verdict === 'accepted' && latest === undefined;
}

export function isBatch({ workflowId }: Run): boolean {
  return workflowId === BATCH_WORKFLOW_ID;
}

/** Whether the run is the first one of its chain, and does not continue another run as new. */
function isFirst({ runId, start }: Run): boolean {
  return runId === start.firstRunId;
}

/** The job locks that a follow-up has acquired. */
function locksOf({ runs }: BatchWorld, { start }: Run): Run[] {
  return runs.filter((each) => {
    const holder = fromPayload(each.start.memo[MEMO_JOB_LOCK_HOLDER]) as JobLockHolder | undefined;
    return each.start.workflowType === JOB_LOCK_WORKFLOW && holder?.firstRunId === start.firstRunId;
  });
}

/** Returns the end of a run, or of the last run that continues it as new. */
function chainEndedAt({ runs }: BatchWorld, { start }: Run): number {
  return runs.findLast((each) => each.start.firstRunId === start.firstRunId)?.closedAt ?? Infinity;
}

/** Returns the values of the batch's memo, with the times at which the batch wrote them. */
function memosOf({ events }: Run): { readonly at: number; readonly memo: BatchMemo }[] {
  return events.flatMap((event) => {
    if (event.type !== 'WorkflowPropertiesModified' || event.fields[MEMO_BATCH] === undefined) return [];
    return [{ at: event.at, memo: fromPayload(event.fields[MEMO_BATCH]) as BatchMemo }];
  });
}
