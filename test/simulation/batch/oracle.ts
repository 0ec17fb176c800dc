import { type BatchMemo, CHUNK_WORKFLOW, isBeyondTolerance, MEMO_BATCH } from '../../../src/core/batch/state';
import { batchWorkflowId } from '../../../src/core/ids';
import { BATCH_WORKFLOW } from '../../../src/core/names';
import { jobOf } from '../../../src/temporal/batch-items';
import type { Request } from '../agent-service';
import { fromPayload } from '../temporal/history';
import type { Run } from '../temporal/run';
import type { BatchAct } from './plan';
import { BATCH_ID, type BatchFacts, type Done } from './world';

type Rule = (facts: BatchFacts) => Iterable<string>;

/** What is wrong with a world; empty when all is true. */
export function liesOfBatch(facts: BatchFacts): string[] {
  return [...facts.broken, ...RULES.flatMap((rule) => [...rule(facts)])];
}

/** A group is started within its permission, and a call takes some seconds. */
const GROUP = 10;
const GROUP_MS = 15_000;
/** The time-out of the activity's heartbeat. */
const HEARTBEAT_MS = 30_000;
/** An attempt goes by the list with which it has begun. */
const ATTEMPT_MS = 60_000;

const RULES: readonly Rule[] = [
  /** A message that may have been processed is sent again only where its loss, or everybody's doubt, was known. */
  function* neverTwice(facts) {
    for (const name of facts.names) {
      const runs = facts.runs.filter(({ workflowId }) => workflowId === name);
      const sent = runs.flatMap((run) => {
        const posts = facts.requests.filter((each) => each.runId === run.runId && mayBeProcessed(each));
        if (posts.length > 1)
          return [
            { run, posts },
            { run, posts },
          ];
        return posts.length === 1 ? [{ run, posts }] : [];
      });
      for (const [index, { run, posts }] of sent.entries()) {
        const before = sent
          .slice(0, index)
          .filter((each) => promptOf(each.run) === promptOf(run) && !isUnknowable(facts, each.run, run));
        if (before.length === 0 || isByOthers(run)) continue;
        const at = posts[0]?.begunAt ?? 0;
        const includes = done(facts, 'retry').some(
          ({ act, at: askedAt }) => act.kind === 'retry' && act.includeUnknown && askedAt < at,
        );
        if (!includes || before.some((each) => isAccepted(facts, each.run)))
          yield `${name}: ${run.runId} sends again, ${before.map((each) => each.run.runId).join(', ')} may have sent`;
      }
    }
  },
  /** Of those that runs of the batch have started; one that somebody has retried counts once the batch must know it. */
  function* withinItsConcurrency(facts) {
    for (const start of facts.starts) {
      const at = startedAt(start.run);
      const own = facts.starts.filter(({ run }) => startedAt(run) <= at && endedAt(facts, run) > at);
      const open = own.length + retriedBefore(facts, at).length;
      const most = Math.max(...inForce(start.batch, at - GROUP_MS, at).map(({ concurrency }) => concurrency));
      if (open > most) yield `${start.run.runId} starts as the ${open}th, and ${most} may be open`;
    }
  },
  function* oneOfAJob(facts) {
    for (const { run } of facts.starts) {
      const at = startedAt(run);
      const own = facts.starts.flatMap((each) =>
        each.run !== run && startedAt(each.run) <= at && endedAt(facts, each.run) > at ? [each.run] : [],
      );
      const other = [...own, ...retriedBefore(facts, at), ...laterOnes(facts, run)].find(
        ({ workflowId }) => jobOf(workflowId) === jobOf(run.workflowId),
      );
      if (other !== undefined) yield `${run.runId} starts while ${other.runId} of its job runs`;
    }
  },
  function* inTheOrderOfTheFile({ starts, names }) {
    const latest = new Map<string, number>();
    for (const { run, batch } of starts) {
      const key = `${batch.start.firstRunId} ${batch.isReset ? batch.runId : ''} ${jobOf(run.workflowId)}`;
      const number = names.indexOf(run.workflowId);
      if (number <= (latest.get(key) ?? -1))
        yield `item ${number} starts after item ${latest.get(key) ?? 0} of its job`;
      latest.set(key, number);
    }
  },
  function* startsNothingBeyondItsTolerance({ starts }) {
    for (const { run, memo, kept } of starts)
      if (isBeyondTolerance(memo, memo) || (kept !== null && isBeyondTolerance(memo, kept)))
        yield `${run.runId} starts, and the batch has failed beyond its tolerance`;
  },
  /** Somebody has told it to start nothing more, or it has ended. */
  function* startsNothingAfterItsEnd({ starts }) {
    for (const { run, batch } of starts) {
      const at = startedAt(run);
      const cancelled = batch.events.find(({ type }) => type === 'ActivityTaskCancelRequested');
      const over = Math.min(cancelled?.at ?? Infinity, batch.closedAt) + GROUP_MS;
      if (at > over) yield `${run.runId} starts ${at - over} ms after a permission of its batch can last`;
    }
  },
  function* startsNothingWhilePaused({ starts, runs, plan }) {
    for (const batch of runs.filter(isBatch)) {
      const memos = memosOf(batch);
      for (const [index, { at, memo }] of memos.entries()) {
        if (!memo.paused || memos[index - 1]?.memo.paused === true) continue;
        const until = memos.slice(index).find((each) => !each.memo.paused)?.at ?? Infinity;
        const inBetween = starts.filter(
          (each) => each.batch === batch && startedAt(each.run) > at && startedAt(each.run) < until,
        );
        // A process that is frozen between its look and its permission has it as long as the server waits for it.
        const lateAt = at + GROUP_MS + (isDisturbed(plan) ? HEARTBEAT_MS : 0);
        const late = inBetween.find(({ run }) => startedAt(run) > lateAt);
        if (late !== undefined) yield `${late.run.runId} starts ${startedAt(late.run) - at} ms after a pause`;
        if (inBetween.length > GROUP) yield `${inBetween.length} items start while ${batch.runId} is paused`;
      }
    }
  },
  /** Undisturbed, a cancelled batch starts nothing after a quarter of a minute. */
  function* breaksOffSoon(facts) {
    if (isDisturbed(facts.plan)) return;
    for (const { at, run } of done(facts, 'cancel')) {
      const late = facts.starts.find(
        ({ run: item, batch }) => batch === run && startedAt(item) > at + GROUP_MS,
      );
      if (late !== undefined)
        yield `${late.run.runId} starts ${startedAt(late.run) - at} ms after the cancellation`;
    }
  },
  /** Whoever has cancelled it with its follow-ups finds each of them told to end. */
  function* cancelsWhatRuns(facts) {
    for (const { act, endedAt, failed, at } of done(facts, 'cancel')) {
      if (act.kind !== 'cancel' || !act.followUps || failed !== null) continue;
      // One that is reset or terminated before it has cancelled ends as if it had not been told.
      if ([...done(facts, 'reset'), ...done(facts, 'terminate')].some((each) => isSoonAfter(endedAt, each)))
        continue;
      for (const { run, batch } of facts.starts) {
        // The batch tells those that the list has not shown to whoever has cancelled it.
        const isOpen = startedAt(run) < at && run.closedAt > Math.max(endedAt, batch.closedAt);
        if (isOpen && !run.events.some(({ type }) => type === 'WorkflowExecutionCancelRequested'))
          yield `${run.runId} was open when the batch was cancelled with it, and goes on`;
      }
    }
  },
  /** Chunks end with their batch; one that was terminated leaves them to the next run. */
  function* closesItsChunks(facts) {
    const { runs } = facts;
    const batch = runs.findLast(isBatch);
    if (batch === undefined || batch.isOpen || batch.status === 'WorkflowExecutionTerminated') return;
    // A starter that stores them while the batch ends leaves them too.
    const starters = [...done(facts, 'start'), ...done(facts, 'terminate')];
    if (starters.some((each) => each.run !== undefined && isSoonAfter(batch.closedAt, each))) return;
    for (const run of runs)
      if (run.start.workflowType === CHUNK_WORKFLOW && run.isOpen) yield `${run.workflowId} is open`;
  },
  /** A batch that is done has an end for each item, and has counted each. */
  function* countsEachItem(facts) {
    const { told, names, plan } = facts;
    const memo = told?.batch.memo;
    if (!told || !memo) return;
    const counted = Object.values({ ...memo.byStatus, ...memo.byFailure }).reduce(
      (sum, times) => sum + times,
      0,
    );
    if (counted !== memo.settled || memo.settled > names.length)
      yield `${memo.settled} settled, ${counted} counted, ${names.length} items`;
    if (told.batch.state === 'completed' && memo.settled !== names.length)
      yield `it is done, and ${memo.settled} of ${names.length} items have settled`;
    const twice = told.ends.filter(({ workflowId }, index) =>
      told.ends.slice(0, index).some((each) => each.workflowId === workflowId),
    );
    for (const { workflowId } of twice) yield `two ends of ${workflowId} are told`;
    const isForgotten = plan.retentionMs !== null || facts.deleted.size > 0;
    if (told.batch.state !== 'completed') return;
    if (told.ends.length !== names.length) yield `it is done, and ${told.ends.length} ends are told`;
    // Somebody may have run or forgotten an item after the batch had counted it.
    if (isForgotten || plan.deeds.some(({ act }) => MEDDLING.has(act.kind))) return;
    const outcomes: Record<string, number> = {};
    for (const { outcome } of told.ends) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    if (inOrder(outcomes) !== inOrder({ ...memo.byStatus, ...memo.byFailure }))
      yield `it has counted ${inOrder({ ...memo.byStatus, ...memo.byFailure })}, and the results are ${inOrder(outcomes)}`;
  },
  /** A message that was processed is told of by no end that says it was not sent. */
  function* tellsTheTruth({ told, requests, runs }) {
    for (const { workflowId, delivery, outcome } of told?.ends ?? []) {
      const run = runs.findLast((each) => each.workflowId === workflowId);
      const isSent = requests.some(({ runId, processedAt }) => runId === run?.runId && processedAt !== null);
      if (isSent && (delivery === 'not-sent' || delivery === 'rejected') && outcome !== 'conflict')
        yield `${workflowId} is ${delivery}, and its message was processed`;
    }
  },
  /** A bug fails tasks again and again. */
  function* tasksSucceed({ runs }) {
    for (const { workflowId, failedTasks } of runs)
      if (failedTasks.length > 5)
        yield `${failedTasks.length} tasks of ${workflowId} failed: ${String(failedTasks[0])}`;
  },
  /** Three events an item, and those of the rounds that come with its operators; a batch that goes on walks over all. */
  function* staysWithinItsHistory({ runs, names, plan }) {
    if (plan.deeds.length > 0) return;
    const batches = runs.filter(isBatch);
    const events = batches.reduce((sum, run) => sum + run.events.length, 0);
    const times = batches.filter(isFirst).length;
    if (events > times * (120 + 3 * names.length))
      yield `the batch has ${events} events for ${names.length} items`;
  },
];

const DISTURBING: ReadonlySet<BatchAct['kind']> = new Set([
  ...(['kill', 'freeze', 'stop', 'lose', 'wrong clock', 'server away', 'reset', 'terminate'] as const),
]);

function isDisturbed({ deeds }: BatchFacts['plan']): boolean {
  return deeds.some(({ act }) => DISTURBING.has(act.kind));
}

const MEDDLING: ReadonlySet<BatchAct['kind']> = new Set([
  'retry item',
  'terminate item',
  'cancel item',
  'foreign',
]);

function done({ done: all }: BatchFacts, kind: BatchAct['kind']): Done[] {
  return all.filter(({ act }) => act.kind === kind);
}

function isSoonAfter(moment: number, { at }: Done): boolean {
  return at >= moment - GROUP_MS && at <= moment + HEARTBEAT_MS;
}

function mayBeProcessed({ operation, begunAt, answer }: Request): boolean {
  return operation === 'post' && begunAt !== null && !/^http 4(29|22)$/.test(answer ?? '');
}

function promptOf({ start }: Run): unknown {
  return (fromPayload(start.input[0]) as { readonly prompt?: string } | undefined)?.prompt;
}

/** Somebody else has started it, who knows nothing of the batch. */
function isByOthers({ start }: Run): boolean {
  return start.asked?.by === 'people' && !start.asked.requestId.startsWith('retry of ');
}

/** Follow-ups of the batch that run at this time, and that somebody has retried by themselves so long before that it must know. */
function retriedBefore(facts: BatchFacts, at: number): Run[] {
  const { runs, names, plan } = facts;
  const before = at - plan.listLagMs - ATTEMPT_MS - HEARTBEAT_MS - GROUP_MS;
  return runs.filter(
    (run) =>
      names.includes(run.workflowId) &&
      isFirst(run) &&
      run.start.asked?.by === 'people' &&
      run.start.searchAttributes.FollowUpBatch !== undefined &&
      startedAt(run) < before &&
      endedAt(facts, run) > at,
  );
}

/** Items behind one that is started, which run by their own names: somebody else has started them. It asks before each start. */
function laterOnes(facts: BatchFacts, item: Run): Run[] {
  const { runs, names, plan } = facts;
  const at = startedAt(item);
  const before = at - plan.listLagMs - HEARTBEAT_MS - GROUP_MS;
  const later = names.slice(names.indexOf(item.workflowId) + 1);
  return runs.filter(
    (run) =>
      later.includes(run.workflowId) &&
      plan.items[names.indexOf(run.workflowId)]?.requestId !== undefined &&
      isFirst(run) &&
      isByOthers(run) &&
      startedAt(run) < before &&
      endedAt(facts, run) > at,
  );
}

/** Nobody could know of it any more: the server has forgotten the batch itself, or what others had started. */
function isUnknowable(facts: BatchFacts, before: Run, run: Run): boolean {
  if (isByOthers(before) && isForgotten(facts, before, startedAt(run))) return true;
  const own = facts.starts.find((start) => start.run === run)?.batch.start;
  const batches = facts.runs.filter(isBatch);
  // After a reset of the batch nothing but the item itself tells that it was begun, and somebody has deleted it.
  if (facts.deleted.has(before) && batches.some(({ isReset }) => isReset)) return true;
  const upToOwn = batches.slice(0, batches.findIndex(({ runId }) => runId === own?.firstRunId) + 1);
  // With each start that found nothing of the runs before, the batch began anew.
  const anew = upToOwn.findLast((start, index) =>
    upToOwn.slice(0, index).every((each) => isForgotten(facts, each, startedAt(start))),
  );
  return anew !== undefined && startedAt(before) < startedAt(anew);
}

function isForgotten({ plan, deleted }: BatchFacts, run: Run, at: number): boolean {
  return run.closedAt + (plan.retentionMs ?? Infinity) <= at || (deleted.get(run) ?? Infinity) <= at;
}

/** A run whose receipt says so, as long as anybody can read it. */
function isAccepted({ runs }: BatchFacts, { memo, workflowId, runId }: Run): boolean {
  const receipt = fromPayload(memo.followUp) as
    { readonly delivery?: { readonly verdict: string } } | undefined;
  const latest = runs.findLast((each) => each.workflowId === workflowId && each.runId !== runId);
  return receipt?.delivery?.verdict === 'accepted' && latest === undefined;
}

function isBatch({ start }: Run): boolean {
  return start.workflowType === BATCH_WORKFLOW && start.workflowId === batchWorkflowId(BATCH_ID);
}

function startedAt({ events }: Run): number {
  return events[0]?.at ?? 0;
}

/** Not one that continues another one as new. */
function isFirst({ runId, start }: Run): boolean {
  return runId === start.firstRunId;
}

/** The end of a run, and of those that it continues as. */
function endedAt({ runs }: BatchFacts, { start }: Run): number {
  return runs.findLast((each) => each.start.firstRunId === start.firstRunId)?.closedAt ?? Infinity;
}

/** What the batch has written down, from its start on. */
function memosOf({ events }: Run): { readonly at: number; readonly memo: BatchMemo }[] {
  return events.flatMap((event) => {
    if (event.type !== 'WorkflowPropertiesModified' || event.fields[MEMO_BATCH] === undefined) return [];
    return [{ at: event.at, memo: fromPayload(event.fields[MEMO_BATCH]) as BatchMemo }];
  });
}

/** The memos that held at some moment of a time. */
function inForce(batch: Run, from: number, to: number): BatchMemo[] {
  const memos = memosOf(batch);
  const first = memos.findLastIndex(({ at }) => at <= from);
  return memos.slice(Math.max(0, first)).flatMap(({ at, memo }) => (at <= to ? [memo] : []));
}

function inOrder(counts: Readonly<Record<string, number>>): string {
  return JSON.stringify(Object.entries(counts).sort(([one], [other]) => (one < other ? -1 : 1)));
}
