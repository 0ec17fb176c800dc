import { CHUNK_WORKFLOW, isBeyondTolerance } from '../../../src/core/batch/state';
import { jobOf } from '../../../src/temporal/batch-items';
import type { BatchFacts } from './world';
import {
  done,
  endedAt,
  GROUP,
  GROUP_MS,
  HEARTBEAT_MS,
  inForce,
  inOrder,
  isAccepted,
  isBatch,
  isByOthers,
  isDisturbed,
  isFirst,
  isSoonAfter,
  isUnknowable,
  laterOnes,
  mayBeProcessed,
  MEDDLING,
  memosOf,
  promptOf,
  retriedBefore,
} from './timeline';

type Rule = (facts: BatchFacts) => Iterable<string>;

/** What is wrong with a world; empty when all is true. */
export function liesOfBatch(facts: BatchFacts): string[] {
  return [...facts.broken, ...RULES.flatMap((rule) => [...rule(facts)])];
}

const RULES: readonly Rule[] = [
  /** A message that may have been processed is sent again only where its loss, or everybody's doubt, was known. */
  function* neverTwice(facts) {
    for (const name of facts.names) {
      const runs = facts.runs.filter(({ workflowId }) => workflowId === name);
      const sent = runs.flatMap((run) =>
        facts.requests.flatMap((each) =>
          each.runId === run.runId && mayBeProcessed(each) ? [{ run, at: each.begunAt ?? 0 }] : [],
        ),
      );
      for (const [index, { run, at }] of sent.entries()) {
        const before = sent
          .slice(0, index)
          .filter((each) => promptOf(each.run) === promptOf(run) && !isUnknowable(facts, each.run, run));
        if (before.length === 0 || isByOthers(run)) continue;
        const includes = done(facts, 'retry').some(
          ({ act, at: askedAt }) => act.includeUnknown && askedAt < at,
        );
        if (!includes || before.some((each) => isAccepted(facts, each.run)))
          yield `${name}: ${run.runId} sends again, ${before.map((each) => each.run.runId).join(', ')} may have sent`;
      }
    }
  },
  /** Of those that runs of the batch have started; one that somebody has retried counts once the batch must know it. */
  function* withinItsConcurrency(facts) {
    for (const start of facts.starts) {
      const at = start.run.startedAt;
      const own = facts.starts.filter(({ run }) => run.startedAt <= at && endedAt(facts, run) > at);
      const open = own.length + retriedBefore(facts, at).length;
      const most = Math.max(...inForce(start.batch, at - GROUP_MS, at).map(({ concurrency }) => concurrency));
      if (open > most) yield `${start.run.runId} starts as the ${open}th, and ${most} may be open`;
    }
  },
  function* oneOfAJob(facts) {
    for (const { run } of facts.starts) {
      const at = run.startedAt;
      const own = facts.starts.flatMap((each) =>
        each.run !== run && each.run.startedAt <= at && endedAt(facts, each.run) > at ? [each.run] : [],
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
      const at = run.startedAt;
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
          (each) => each.batch === batch && each.run.startedAt > at && each.run.startedAt < until,
        );
        // A process that is frozen between its look and its permission has it as long as the server waits for it.
        const lateAt = at + GROUP_MS + (isDisturbed(plan) ? HEARTBEAT_MS : 0);
        const late = inBetween.find(({ run }) => run.startedAt > lateAt);
        if (late !== undefined) yield `${late.run.runId} starts ${late.run.startedAt - at} ms after a pause`;
        if (inBetween.length > GROUP) yield `${inBetween.length} items start while ${batch.runId} is paused`;
      }
    }
  },
  /** Undisturbed, a cancelled batch starts nothing after a quarter of a minute. */
  function* breaksOffSoon(facts) {
    if (isDisturbed(facts.plan)) return;
    for (const { at, run } of done(facts, 'cancel')) {
      const late = facts.starts.find(
        ({ run: item, batch }) => batch === run && item.startedAt > at + GROUP_MS,
      );
      if (late !== undefined)
        yield `${late.run.runId} starts ${late.run.startedAt - at} ms after the cancellation`;
    }
  },
  /** Whoever has cancelled it with its follow-ups finds each of them told to end. */
  function* cancelsWhatRuns(facts) {
    for (const { act, endedAt, failed, at } of done(facts, 'cancel')) {
      if (!act.followUps || failed !== null) continue;
      // One that is reset or terminated before it has cancelled ends as if it had not been told.
      if ([...done(facts, 'reset'), ...done(facts, 'terminate')].some((each) => isSoonAfter(endedAt, each)))
        continue;
      for (const { run, batch } of facts.starts) {
        // The batch tells those that the list has not shown to whoever has cancelled it.
        const isOpen = run.startedAt < at && run.closedAt > Math.max(endedAt, batch.closedAt);
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
    const counts = { ...memo.byStatus, ...memo.byFailure };
    const counted = Object.values(counts).reduce((sum, times) => sum + times, 0);
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
    const [said, shown] = [inOrder(counts), inOrder(outcomes)];
    if (said !== shown) yield `it has counted ${said}, and the results are ${shown}`;
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
