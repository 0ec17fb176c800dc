import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import { type BatchProgress, progressOf } from '../../core/batch/progress';
import {
  batchMemo,
  type BatchInput,
  type BatchMemo,
  type Begun,
  begunBy,
  isPosition,
  type Lane,
  START,
} from '../../core/batch/state';
import { SEND_PERMISSION_MS } from '../../core/cadence';
import { isRecord } from '../../core/checks';
import { batchIdOf, batchWorkflowId } from '../../core/ids';
import { BATCH_WORKFLOW, NO_CHANGE } from '../../core/names';
import { ItemsGoneError, ItemsOfBatch } from '../../temporal/batch-items';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { describeWorkflow, readOwnInput, type RunState, stateOf } from '../../temporal/existing-run';
import { pendingActivity, workersPolling } from '../../temporal/sdk-internals';
import { SERVER_LIMIT_MS, within } from '../call';
import { failedTask } from '../description';
import { notFound, silence } from '../errors';

/** What the Temporal server knows of a batch. It needs no worker. */
export interface BatchReport {
  readonly workflowId: string;
  readonly batchId: string;
  readonly runId: string;
  readonly state: RunState;
  readonly startedAt: string;
  /** Null while it runs. */
  readonly endedAt: string | null;
  readonly taskQueue: string;
  /** Where it stands; null where no worker has taken it up yet. */
  readonly progress: BatchProgress | null;
  /** What it has written down. After a reset it may be as old as the point to which it was reset. */
  readonly memo: BatchMemo | null;
  readonly wasReset: boolean;
  /** Why it does not go on, and what helps; null where nothing is wrong. */
  readonly trouble: string | null;
}

/** By its id, or by its workflow id; null where there is none. */
export async function lookForBatch(client: Client, batch: string): Promise<BatchReport | null> {
  const info = await describeWorkflow(client, batchWorkflowId(batchIdOf(batch)));
  return info?.type === BATCH_WORKFLOW ? describedAs(client, info) : null;
}

async function describedAs(client: Client, info: WorkflowExecutionDescription): Promise<BatchReport> {
  const { workflowId, runId, raw, taskQueue } = info;
  const state = stateOf(info.status.name);
  const kept = batchMemo(info.memo);
  const pending = await pendingActivity(client, info, 'runItems');
  const details = pending?.details;
  const memo = kept !== null && isPosition(details) ? { ...kept, ...details } : kept;
  const failure = pending?.lastFailure;
  const fails = failure && failure.applicationFailureInfo?.type !== NO_CHANGE ? failure.message : null;
  const isPaused = pending?.paused === true;
  const trouble =
    (isPaused ? 'somebody has paused its activity; `temporal activity unpause` lets it go on' : null) ??
    (fails ? `its activity fails, and is tried again: ${fails}` : null) ??
    (await failedTask(client, info));
  return {
    workflowId,
    runId,
    state,
    taskQueue,
    memo,
    trouble,
    batchId: memo?.batchId ?? batchIdOf(workflowId),
    startedAt: memo?.startedAt ?? info.startTime.toISOString(),
    endedAt: info.closeTime?.toISOString() ?? null,
    progress: memo && progressOf(memo, state),
    wasReset: Boolean(raw.workflowExtendedInfo?.lastResetTime),
  };
}

/** @throws NotFoundError */
export async function findBatch(client: Client, batch: string): Promise<BatchReport> {
  const found = await lookForBatch(client, batch);
  if (found === null) throw notFound('batch', batch, client.options.namespace);
  return found;
}

/** As {@link findBatch}, and whether a worker is there. */
export async function reportOf(client: Client, batch: string): Promise<BatchReport> {
  const report = await within(client, SERVER_LIMIT_MS, () => findBatch(client, batch));
  const { taskQueue, state, trouble } = report;
  if (state !== 'running' || trouble !== null) return report;
  const workers = (await workersPolling(client, taskQueue)).length;
  return { ...report, trouble: workers === 0 ? silence(taskQueue, workers) : null };
}

/** What the latest run of a batch was started with. @throws FollowUpError `BATCH_FORGOTTEN` */
export async function inputOf(client: Client, batch: BatchReport) {
  const { workflowId, runId, batchId, memo } = batch;
  const run = await readOwnInput(client, workflowId, runId);
  if (!isRecord(run?.input)) throw new ItemsGoneError(batchId);
  const { items, chunks, ...input } = run.input as BatchInput;
  // A run that continues as new has no such fields in its input.
  const digest = input.digest ?? memo?.digest ?? null;
  const position = memo ?? {
    ...START,
    bound: 0,
    begun: input.begun ?? null,
    ending: null,
    movingSince: null,
  };
  const count = chunks?.items ?? items?.length ?? 0;
  const source = { batchId, workflowId, runId, digest, items: count, chunks };
  return { items, chunks, digest, count, position, all: new ItemsOfBatch(client, source) };
}

/** A run that was ended early may still start a group, as long as its permission lasts. */
export const QUIET_AFTER_MS = SEND_PERMISSION_MS + 5_000;

/** Clocks of caller and server differ by less. */
const CLOCKS_DIFFER_MS = 3_600_000;

/** Questions to the server at once. */
const AT_ONCE = 16;

/** What a run that has ended has begun, and those before it. What it may have begun is asked for now, before it is forgotten. */
export async function begunOf(client: Client, batch: BatchReport, signal: AbortSignal): Promise<Begun> {
  const { wasReset, startedAt, endedAt } = batch;
  const { position, all, count } = await inputOf(client, batch);
  const { movingSince, lanes } = position;
  const begun = begunBy(position);
  if (!wasReset && movingSince === null && lanes.every(([, , how]) => how !== 'may')) return begun;
  if (Date.now() < Date.parse(endedAt ?? '') + CLOCKS_DIFFER_MS)
    await sleep(QUIET_AFTER_MS, undefined, { signal });
  // After a reset the memo is as old as its point.
  const bound = wasReset ? count : Math.max(position.bound, begun.cursor);
  const { namespace } = client.options;
  const { config } = await client.workflowService.describeNamespace({ namespace });
  const retentionMs = 1_000 * Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0);
  const since = wasReset ? Date.parse(startedAt) : (movingSince ?? Date.parse(startedAt));
  // The server may have forgotten it.
  if (Date.now() - since >= retentionMs) return { cursor: bound, lanes: [] };
  const exists = async (item: number) =>
    (await describeWorkflow(client, (await all.named(item)).workflowId)) !== null;
  return askedFor(begun, bound, (item) => all.endOfLane(item), exists);
}

/** Items of a lane are begun in their order: nothing behind one that does not exist was begun. */
export async function askedFor(
  begun: Begun,
  bound: number,
  endOfLane: (item: number) => Promise<number>,
  exists: (item: number) => Promise<boolean>,
): Promise<Begun> {
  const asked = [...begun.lanes];
  let { cursor } = begun;
  while (cursor < bound) {
    const end = await endOfLane(cursor);
    asked.push([cursor, end, 'free']);
    cursor = end;
  }
  const lanes: Lane[] = [];
  await eachConcurrently(asked, AT_ONCE, async ([first, end, state]) => {
    let next = first;
    while (next < end && (await exists(next))) next += 1;
    // The last one that exists may be open. One that is known to have been begun and does not exist is gone.
    if (next > first) lanes.push([next - 1, end, 'open']);
    else lanes.push([first, end, state === 'open' ? 'open' : 'free']);
  });
  return { cursor, lanes };
}
