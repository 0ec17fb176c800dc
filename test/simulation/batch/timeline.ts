import { type BatchMemo, MEMO_BATCH } from '../../../src/core/batch/state';
import { batchWorkflowId } from '../../../src/core/ids';
import { BATCH_WORKFLOW } from '../../../src/core/names';
import type { Request } from '../agent-service';
import { fromPayload } from '../temporal/history';
import type { Run } from '../temporal/run';
import { BATCH_ID } from './people';
import type { BatchAct } from './plan';
import type { BatchFacts, Done } from './world';

/** A group is started within its permission, and a call takes some seconds. */
export const GROUP = 10;
export const GROUP_MS = 15_000;
/** The time-out of the activity's heartbeat. */
export const HEARTBEAT_MS = 30_000;
/** An attempt goes by the list with which it has begun. */
export const ATTEMPT_MS = 60_000;

const DISTURBING: ReadonlySet<BatchAct['kind']> = new Set([
  ...(['kill', 'freeze', 'stop', 'lose', 'wrong clock', 'server away', 'reset', 'terminate'] as const),
]);

export function isDisturbed({ deeds }: BatchFacts['plan']): boolean {
  return deeds.some(({ act }) => DISTURBING.has(act.kind));
}

export const MEDDLING: ReadonlySet<BatchAct['kind']> = new Set([
  'retry item',
  'terminate item',
  'cancel item',
  'foreign',
]);

export function done<Kind extends BatchAct['kind']>({ done: all }: BatchFacts, kind: Kind) {
  return all.filter(
    (each): each is Done & { readonly act: { readonly kind: Kind } } => each.act.kind === kind,
  );
}

export function isSoonAfter(moment: number, { at }: Done): boolean {
  return at >= moment - GROUP_MS && at <= moment + HEARTBEAT_MS;
}

export function mayBeProcessed({ operation, begunAt, answer }: Request): boolean {
  return operation === 'post' && begunAt !== null && !/^http 4(29|22)$/.test(answer ?? '');
}

export function promptOf({ start }: Run): unknown {
  return (fromPayload(start.input[0]) as { readonly prompt?: string } | undefined)?.prompt;
}

/** Somebody else has started it, who knows nothing of the batch. */
export function isByOthers({ start }: Run): boolean {
  return start.asked?.by === 'people' && !start.asked.requestId.startsWith('retry of ');
}

/** Follow-ups of the batch that run at this time, and that somebody has retried by themselves so long before that it must know. */
export function retriedBefore(facts: BatchFacts, at: number): Run[] {
  const { runs, names, plan } = facts;
  const before = at - plan.listLagMs - ATTEMPT_MS - HEARTBEAT_MS - GROUP_MS;
  return runs.filter(
    (run) =>
      names.includes(run.workflowId) &&
      isFirst(run) &&
      run.start.asked?.by === 'people' &&
      run.start.searchAttributes.FollowUpBatch !== undefined &&
      run.startedAt < before &&
      endedAt(facts, run) > at,
  );
}

/** Items behind one that is started, which run by their own names: somebody else has started them. It asks before each start. */
export function laterOnes(facts: BatchFacts, item: Run): Run[] {
  const { runs, names, plan } = facts;
  const at = item.startedAt;
  const before = at - plan.listLagMs - HEARTBEAT_MS - GROUP_MS;
  const later = names.slice(names.indexOf(item.workflowId) + 1);
  return runs.filter(
    (run) =>
      later.includes(run.workflowId) &&
      plan.items[names.indexOf(run.workflowId)]?.requestId !== undefined &&
      isFirst(run) &&
      isByOthers(run) &&
      run.startedAt < before &&
      endedAt(facts, run) > at,
  );
}

/** Nobody could know of it any more: the server has forgotten the batch itself, or what others had started. */
export function isUnknowable(facts: BatchFacts, before: Run, run: Run): boolean {
  if (isByOthers(before) && isForgotten(facts, before, run.startedAt)) return true;
  const own = facts.starts.find((start) => start.run === run)?.batch.start;
  const batches = facts.runs.filter(isBatch);
  // After a reset of the batch nothing but the item itself tells that it was begun, and somebody has deleted it.
  if (facts.deleted.has(before) && batches.some(({ isReset }) => isReset)) return true;
  const upToOwn = batches.slice(0, batches.findIndex(({ runId }) => runId === own?.firstRunId) + 1);
  // With each start that found nothing of the runs before, the batch began anew.
  const anew = upToOwn.findLast((start, index) =>
    upToOwn.slice(0, index).every((each) => isForgotten(facts, each, start.startedAt)),
  );
  return anew !== undefined && before.startedAt < anew.startedAt;
}

function isForgotten({ plan, deleted }: BatchFacts, run: Run, at: number): boolean {
  return run.closedAt + (plan.retentionMs ?? Infinity) <= at || (deleted.get(run) ?? Infinity) <= at;
}

/** A run whose receipt says so, as long as anybody can read it. */
export function isAccepted({ runs }: BatchFacts, { memo, workflowId, runId }: Run): boolean {
  const receipt = fromPayload(memo.followUp) as
    { readonly delivery?: { readonly verdict: string } } | undefined;
  const latest = runs.findLast((each) => each.workflowId === workflowId && each.runId !== runId);
  return receipt?.delivery?.verdict === 'accepted' && latest === undefined;
}

export function isBatch({ start }: Run): boolean {
  return start.workflowType === BATCH_WORKFLOW && start.workflowId === batchWorkflowId(BATCH_ID);
}

/** Not one that continues another one as new. */
export function isFirst({ runId, start }: Run): boolean {
  return runId === start.firstRunId;
}

/** The end of a run, and of those that it continues as. */
export function endedAt({ runs }: BatchFacts, { start }: Run): number {
  return runs.findLast((each) => each.start.firstRunId === start.firstRunId)?.closedAt ?? Infinity;
}

/** What the batch has written down, from its start on. */
export function memosOf({ events }: Run): { readonly at: number; readonly memo: BatchMemo }[] {
  return events.flatMap((event) => {
    if (event.type !== 'WorkflowPropertiesModified' || event.fields[MEMO_BATCH] === undefined) return [];
    return [{ at: event.at, memo: fromPayload(event.fields[MEMO_BATCH]) as BatchMemo }];
  });
}

/** The memos that held at some moment of a time. */
export function inForce(batch: Run, from: number, to: number): BatchMemo[] {
  const memos = memosOf(batch);
  const first = memos.findLastIndex(({ at }) => at <= from);
  return memos.slice(Math.max(0, first)).flatMap(({ at, memo }) => (at <= to ? [memo] : []));
}

export function inOrder(counts: Readonly<Record<string, number>>): string {
  return JSON.stringify(Object.entries(counts).sort(([one], [other]) => (one < other ? -1 : 1)));
}
