import { type BatchMemo, MEMO_BATCH } from '../../../src/core/batch/state';
import type { Request } from '../agent-service';
import { fromPayload } from '../temporal/history';
import type { Run } from '../temporal/run';
import type { Done } from '../world';
import type { BatchAct } from './plan';
import { BATCH_WORKFLOW_ID, type BatchWorld } from './world';

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

export function isDisturbed({ plan }: BatchWorld): boolean {
  return plan.deeds.some(({ act }) => DISTURBING.has(act.kind));
}

export function isSoonAfter(moment: number, { at }: Done<BatchAct>): boolean {
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

/** Follow-ups of items that people have started by themselves so long before that the batch must know it, and that still run. */
function openOfPeople(world: BatchWorld, at: number, knownAfterMs: number): Run[] {
  const before = at - world.plan.listLagMs - HEARTBEAT_MS - GROUP_MS - knownAfterMs;
  return world.runs.filter(
    (run) =>
      world.names.includes(run.workflowId) &&
      isFirst(run) &&
      run.start.asked?.by === 'people' &&
      run.startedAt < before &&
      endedAt(world, run) > at,
  );
}

/** Those of the batch that somebody has retried. */
export function retriedBefore(world: BatchWorld, at: number): Run[] {
  return openOfPeople(world, at, ATTEMPT_MS).filter(
    ({ start }) => start.searchAttributes.FollowUpBatch !== undefined,
  );
}

/** Items behind one that is started, which run by their own names: somebody else has started them. It asks before each start. */
export function laterOnes(world: BatchWorld, { workflowId, startedAt }: Run): Run[] {
  const { names, plan } = world;
  return openOfPeople(world, startedAt, 0).filter((run) => {
    const number = names.indexOf(run.workflowId);
    return (
      number > names.indexOf(workflowId) && plan.items[number]?.requestId !== undefined && isByOthers(run)
    );
  });
}

/** Nobody could know of it any more: the server has forgotten the batch itself, or what others had started. */
export function isUnknowable(world: BatchWorld, before: Run, run: Run): boolean {
  if (isByOthers(before) && isForgotten(world, before, run.startedAt)) return true;
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
export function isAccepted({ runs }: BatchWorld, { memo, workflowId, runId }: Run): boolean {
  const receipt = fromPayload(memo.followUp) as
    { readonly delivery?: { readonly verdict: string } } | undefined;
  const latest = runs.findLast((each) => each.workflowId === workflowId && each.runId !== runId);
  return receipt?.delivery?.verdict === 'accepted' && latest === undefined;
}

export function isBatch({ workflowId }: Run): boolean {
  return workflowId === BATCH_WORKFLOW_ID;
}

/** Not one that continues another one as new. */
export function isFirst({ runId, start }: Run): boolean {
  return runId === start.firstRunId;
}

/** The end of a run, and of those that it continues as. */
export function endedAt({ runs }: BatchWorld, { start }: Run): number {
  return runs.findLast((each) => each.start.firstRunId === start.firstRunId)?.closedAt ?? Infinity;
}

/** What the batch has written down, from its start on. */
export function memosOf({ events }: Run): { readonly at: number; readonly memo: BatchMemo }[] {
  return events.flatMap((event) => {
    if (event.type !== 'WorkflowPropertiesModified' || event.fields[MEMO_BATCH] === undefined) return [];
    return [{ at: event.at, memo: fromPayload(event.fields[MEMO_BATCH]) as BatchMemo }];
  });
}
