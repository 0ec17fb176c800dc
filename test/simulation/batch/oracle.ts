import type { JobLockHolder } from '../../../src/contract/activities';
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

/** Whoever does this may run or forget an item after the batch had counted it. */
const ITEM_OPERATIONS: ReadonlySet<string> = new Set([
  'retry item',
  'terminate item',
  'cancel item',
  'foreign',
]);

/** A group is started within its permission, and a call takes some seconds. */
const START_GROUP_SIZE = 10;
const GROUP_MS = 15_000;
/** For so long a batch waits for it. */
const CANCEL_REQUEST_MS = 5_000;
/** From the release of a job lock to the end of its follow-up, with slow reports. */
const LOCK_MS = 20_000;
/** The time-out of the activity's heartbeat. */
const HEARTBEAT_MS = 30_000;
/** An attempt goes by the list with which it has begun. */
const ATTEMPT_MS = 60_000;

const DISTURBING_OPERATIONS: ReadonlySet<BatchOperation['kind']> = new Set([
  ...(['kill', 'freeze', 'stop', 'lose', 'wrong clock', 'server unavailable', 'reset', 'terminate'] as const),
]);

/** What is wrong with a world; empty when all is true. */
export function findBatchViolations(world: BatchWorld): string[] {
  return [...world.failures, ...RULES.flatMap((rule) => [...rule(world)])];
}

const RULES: readonly ((world: BatchWorld) => Iterable<string>)[] = [
  /** A message that may have been processed is sent again only where its loss, or everybody's doubt, was known. */
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
          yield `${name}: ${run.runId} sends again, ${before.map((each) => each.run.runId).join(', ')} may have sent`;
      }
    }
  },
  /** Of those that runs of the batch have started; one that somebody has retried counts once the batch must know it. */
  function* respectsConcurrencyAndJobOrder(world) {
    for (const { run, batch } of world.starts) {
      const at = run.startedAt;
      const own = world.starts.map((start) => start.run);
      const open = own.filter((each) => each.startedAt <= at && chainEndedAt(world, each) > at);
      open.push(...runningRetries(world, at));
      const memos = changesInEffect(memosOf(batch), at - GROUP_MS, at);
      const most = Math.max(...memos.map(({ memo }) => memo.concurrency));
      if (open.length > most) yield `${run.runId} starts as the ${open.length}th, and ${most} may be open`;
      const other = [...open, ...laterItemsRunning(world, run)].find(
        (each) =>
          each !== run && jobKeyFromWorkflowId(each.workflowId) === jobKeyFromWorkflowId(run.workflowId),
      );
      if (other !== undefined) yield `${run.runId} starts while ${other.runId} of its job runs`;
    }
  },
  /** With `whenActive: wait`, a follow-up has the job for itself from its baseline read to its end: it holds the job lock. */
  function* oneFollowUpOfAJobHoldsItsLock(world) {
    if (world.plan.request.whenActive !== 'wait') return;
    for (const { number, point, runId, requestedAt, firstByteAt } of world.requests) {
      const run = world.runs.find((each) => each.runId === runId);
      const at = point === 'post' ? (firstByteAt ?? Infinity) : requestedAt;
      // An activity may outlive its run, whose lock the next follow-up acquires. A poll may come while the lock is released.
      if (run === undefined || at > run.closedAt || (point !== 'post' && point !== 'baseline')) continue;
      if (!locksOf(world, run).some((lock) => lock.startedAt <= at && lock.closedAt >= at))
        yield `${run.workflowId}: request ${number} of ${runId} without the job lock`;
    }
    if (isDisturbed(world) || world.performedOfKind('terminate item').length > 0) return;
    for (const run of world.runs.filter(({ workflowId }) => world.names.includes(workflowId)))
      for (const lock of locksOf(world, run))
        if (!run.isOpen && lock.isOpen) yield `${run.runId} has ended and still holds the job lock`;
        else if (lock.closedAt < chainEndedAt(world, run) - LOCK_MS)
          yield `${run.runId} releases the job lock before its end`;
  },
  /** After a 429 with a wait, a worker makes no POST for any job of the project until the wait is over. */
  function* respectsCooldown(world) {
    if (isDisturbed(world)) return;
    for (const requests of world.requestsOfProjects) {
      const posts = requests.filter(({ point }) => point === 'post');
      for (const { answer, retryAfter, receivedAt, worker } of posts) {
        if (answer !== 'http_429' || receivedAt === null || retryAfter === null) continue;
        // A POST whose permission was requested before is made.
        const [from, to] = [receivedAt + GROUP_MS, receivedAt + Number(retryAfter) * 1_000];
        const post = posts.find(
          (each) => each.worker === worker && each.requestedAt > from && each.requestedAt < to,
        );
        if (post !== undefined)
          yield `POST ${post.number} of ${post.runId} ${to - post.requestedAt} ms before the end of a cool-down`;
      }
    }
  },
  function* startsInFileOrder({ starts, names }) {
    const latest = new Map<string, number>();
    for (const { run, batch } of starts) {
      const key = `${batch.start.firstRunId} ${batch.isReset ? batch.runId : ''} ${jobKeyFromWorkflowId(run.workflowId)}`;
      const number = names.indexOf(run.workflowId);
      if (number <= (latest.get(key) ?? -1))
        yield `item ${number} starts after item ${latest.get(key) ?? 0} of its job`;
      latest.set(key, number);
    }
  },
  function* startsNothingBeyondMaxFailures({ starts }) {
    for (const { run, memo, kept } of starts)
      if (isMaxFailuresExceeded(memo, memo) || (kept !== null && isMaxFailuresExceeded(memo, kept)))
        yield `${run.runId} starts, although more items failed than maxFailures`;
  },
  /** It has ended, or its activity was told to start nothing more: undisturbed, at once when somebody cancels the batch. */
  function* startsNothingAfterItsEnd(world) {
    const cancels = isDisturbed(world) ? [] : world.performedOfKind('cancel');
    for (const { run, batch } of world.starts) {
      const cancelRequests = batch.events.filter(({ type }) => type === 'ActivityTaskCancelRequested');
      const ends = [...cancelRequests, ...cancels.filter((each) => each.run === batch)].map(({ at }) => at);
      const late = run.startedAt - Math.min(...ends, batch.closedAt) - GROUP_MS;
      if (late > 0) yield `${run.runId} starts ${late} ms after a permission of its batch can last`;
    }
  },
  function* startsNothingWhilePaused(world) {
    for (const batch of world.runs.filter(isBatch)) {
      const memos = memosOf(batch);
      for (const [index, { at, memo }] of memos.entries()) {
        if (!memo.isPaused || memos[index - 1]?.memo.isPaused === true) continue;
        const until = memos.slice(index).find((each) => !each.memo.isPaused)?.at ?? Infinity;
        const inBetween = world.starts.filter(
          (each) => each.batch === batch && each.run.startedAt > at && each.run.startedAt < until,
        );
        // A process that is frozen between its look and its permission has it as long as the server waits for it.
        const lateAt = at + GROUP_MS + (isDisturbed(world) ? HEARTBEAT_MS : 0);
        const late = inBetween.find(({ run }) => run.startedAt > lateAt);
        if (late !== undefined) yield `${late.run.runId} starts ${late.run.startedAt - at} ms after a pause`;
        if (inBetween.length > START_GROUP_SIZE)
          yield `${inBetween.length} items start while ${batch.runId} is paused`;
      }
    }
  },
  /** Whoever has cancelled it with its follow-ups finds each of them told to end. */
  function* cancelReachesRunningItems(world) {
    const ends = [...world.performedOfKind('reset'), ...world.performedOfKind('terminate')];
    for (const { operation, endedAt: cancelledAt, failed, at } of world.performedOfKind('cancel')) {
      // One that is reset or terminated before it has cancelled ends as if it had not been told.
      if (!operation.cancelRunning || failed || ends.some((each) => happensSoonAfter(cancelledAt, each)))
        continue;
      for (const { run, batch } of world.starts) {
        // The batch tells those that the list has not shown to whoever has cancelled it.
        const isOpen = run.startedAt < at && run.closedAt > Math.max(cancelledAt, batch.closedAt);
        if (isOpen && !run.events.some(({ type }) => type === 'WorkflowExecutionCancelRequested'))
          yield `${run.runId} was open when the batch was cancelled with it, and goes on`;
      }
    }
  },
  /** The server shows a batch as failed that ends as cancelled before the request to cancel it comes. */
  function* isShownAsCancelled(world) {
    if (isDisturbed(world) || world.plan.paceMs > CANCEL_REQUEST_MS) return;
    for (const { runId, end } of world.runs.filter(isBatch))
      if (end.failure?.canceledFailureInfo) yield `${runId} was cancelled, and is shown as failed`;
  },
  /** Chunks end with their batch; one that was terminated leaves them to the next run. */
  function* closesItsChunks(world) {
    const { latest } = world;
    if (latest === undefined || latest.isOpen || latest.status === 'WorkflowExecutionTerminated') return;
    // A starter that stores them while the batch ends leaves them too.
    const starters = [...world.performedOfKind('start'), ...world.performedOfKind('terminate')];
    if (starters.some((each) => each.run !== undefined && happensSoonAfter(latest.closedAt, each))) return;
    for (const run of world.runs)
      if (run.start.workflowType === CHUNK_WORKFLOW && run.isOpen) yield `${run.workflowId} is open`;
  },
  /** A batch that is done has an end for each item, and has counted each. */
  function* countsEachItem({ finalReport, names, plan, deleted }) {
    const { memo, state } = finalReport?.batch ?? {};
    if (!finalReport || !memo) return;
    const { ends } = finalReport;
    const counts = { ...memo.byStatus, ...memo.byFailure };
    const counted = Object.values(counts).reduce((sum, times) => sum + times, 0);
    if (counted !== memo.ended || memo.ended > names.length)
      yield `${memo.ended} ended, ${counted} counted, ${names.length} items`;
    if (new Set(ends.map(({ workflowId }) => workflowId)).size < ends.length)
      yield 'two ends of one item are told';
    if (state !== 'completed') return;
    if (memo.ended !== names.length || ends.length !== names.length)
      yield `it is done, ${memo.ended} of ${names.length} items have ended, and ${ends.length} ends are told`;
    const isForgotten = plan.retentionMs !== null || deleted.size > 0;
    if (isForgotten || plan.operations.some(({ operation }) => ITEM_OPERATIONS.has(operation.kind))) return;
    const outcomes: Record<string, number> = {};
    for (const { outcome } of ends) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    const [said, shown] = [counts, outcomes].map((each) => JSON.stringify(Object.entries(each).sort()));
    if (said !== shown) yield `it has counted ${said}, and the results are ${shown}`;
  },
  /** A message that was processed is told of by no end that says it was not sent. */
  function* outcomesMatchJournal({ finalReport, requests, runs }) {
    for (const { workflowId, delivery, outcome } of finalReport?.ends ?? []) {
      const run = runs.findLast((each) => each.workflowId === workflowId);
      const isSent = requests.some(({ runId, processedAt }) => runId === run?.runId && processedAt !== null);
      if (isSent && (delivery === 'not-sent' || delivery === 'rejected') && outcome !== 'conflict')
        yield `${workflowId} is ${delivery}, and its message was processed`;
    }
  },
  /** Three events an item, and those of the rounds that come with its operators; a batch that goes on walks over all. */
  function* historyIsBounded({ runs, names, plan }) {
    if (plan.operations.length > 0) return;
    const batches = runs.filter(isBatch);
    const events = batches.reduce((sum, run) => sum + run.events.length, 0);
    const times = batches.filter(isFirst).length;
    if (events > times * (120 + 3 * names.length))
      yield `the batch has ${events} events for ${names.length} items`;
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

/** Somebody else has started it, who knows nothing of the batch. */
function isStartedByAnotherClient({ start }: Run): boolean {
  return start.requester?.by === 'client' && !start.requester.requestId.startsWith('retry of ');
}

/** Follow-ups of items that people have started by themselves so long before that the batch must know it, and that still run. */
function runningFromClients(world: BatchWorld, at: number, knownAfterMs: number): Run[] {
  const before = at - world.plan.listLagMs - HEARTBEAT_MS - GROUP_MS - knownAfterMs;
  return world.runs.filter(
    (run) =>
      world.names.includes(run.workflowId) &&
      isFirst(run) &&
      run.start.requester?.by === 'client' &&
      run.startedAt < before &&
      chainEndedAt(world, run) > at,
  );
}

/** Those of the batch that somebody has retried. */
function runningRetries(world: BatchWorld, at: number): Run[] {
  return runningFromClients(world, at, ATTEMPT_MS).filter(
    ({ start }) => start.searchAttributes.FollowUpBatch !== undefined,
  );
}

/** Items behind one that is started, which run by their own names: somebody else has started them. It asks before each start. */
function laterItemsRunning(world: BatchWorld, { workflowId, startedAt }: Run): Run[] {
  const { names, plan } = world;
  return runningFromClients(world, startedAt, 0).filter((run) => {
    const number = names.indexOf(run.workflowId);
    return (
      number > names.indexOf(workflowId) &&
      plan.items[number]?.requestId !== undefined &&
      isStartedByAnotherClient(run)
    );
  });
}

/** Nobody could know of it any more: the server has forgotten the batch itself, or what others had started. */
function isEarlierRunUnknown(world: BatchWorld, before: Run, run: Run): boolean {
  if (isStartedByAnotherClient(before) && isForgotten(world, before, run.startedAt)) return true;
  const own = world.starts.find((start) => start.run === run)?.batch.start;
  const batches = world.runs.filter(isBatch);
  // After a reset of the batch nothing but the item itself tells that it was begun, and somebody has deleted it.
  if (world.deleted.has(before) && batches.some(({ isReset }) => isReset)) return true;
  const upToOwn = batches.slice(0, batches.findIndex(({ runId }) => runId === own?.firstRunId) + 1);
  // With each start that found nothing of the runs before, the batch began anew.
  const anew = upToOwn.findLast((start, index) =>
    upToOwn.slice(0, index).every((each) => isForgotten(world, each, start.startedAt)),
  );
  return anew !== undefined && before.startedAt < anew.startedAt;
}

function isForgotten({ plan, deleted }: BatchWorld, run: Run, at: number): boolean {
  return run.closedAt + (plan.retentionMs ?? Infinity) <= at || (deleted.get(run) ?? Infinity) <= at;
}

/** A run whose receipt says so, as long as anybody can read it. */
function isAccepted({ runs }: BatchWorld, { memo, workflowId, runId }: Run): boolean {
  const receipt = fromPayload(memo[MEMO_RECEIPT]) as
    { readonly delivery?: { readonly verdict: string } } | undefined;
  const latest = runs.findLast((each) => each.workflowId === workflowId && each.runId !== runId);
  return receipt?.delivery?.verdict === 'accepted' && latest === undefined;
}

export function isBatch({ workflowId }: Run): boolean {
  return workflowId === BATCH_WORKFLOW_ID;
}

/** Not one that continues another one as new. */
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

/** The end of a run, and of those that it continues as. */
function chainEndedAt({ runs }: BatchWorld, { start }: Run): number {
  return runs.findLast((each) => each.start.firstRunId === start.firstRunId)?.closedAt ?? Infinity;
}

/** What the batch has written down, from its start on. */
function memosOf({ events }: Run): { readonly at: number; readonly memo: BatchMemo }[] {
  return events.flatMap((event) => {
    if (event.type !== 'WorkflowPropertiesModified' || event.fields[MEMO_BATCH] === undefined) return [];
    return [{ at: event.at, memo: fromPayload(event.fields[MEMO_BATCH]) as BatchMemo }];
  });
}
