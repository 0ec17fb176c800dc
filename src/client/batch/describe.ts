import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, WorkflowFailedError } from '@temporalio/client';
import { EMPTY_BOARD, isBatchBoard } from '../../batch/board';
import { itemsOf } from '../../batch/items';
import { type BatchInput, batchMemo } from '../../batch/memo';
import { type BatchView, type BatchItemResult, progressOf } from '../../batch/progress';
import { mergeStarted, wasStarted } from '../../batch/started-items';
import { isRecord } from '../../contract/checks';
import { type End, endWithoutReceipt, mayTryAgain } from '../../contract/outcome';
import { batchWorkflowId } from '../../contract/ids';
import { BATCH_WORKFLOW, POLL_AGAIN } from '../../contract/names';
import { ItemsGoneError, ItemsOfBatch, type NamedItem } from '../../temporal/batch-items';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { describeWorkflow, readOwnInput, stateOf } from '../../temporal/existing-run';
import { findEnd } from '../../temporal/follow-up-end';
import { isTransient } from '../../temporal/grpc-status';
import { addEnds, lastingEnd, LIST_LAG_MS, type ListedEnd, openOf } from '../../temporal/lists';
import { pendingActivity, workersPolling } from '../../temporal/sdk-internals';
import { SERVER_LIMIT_MS, within } from '../call';
import { failedTask } from '../description';
import { notFound, silence } from '../errors';
import { itemsDigest } from './check';

/** The latest run of a batch as the Temporal server knows it. After a reset, the memo may be as old as the reset point. */
export type BatchReport = NonNullable<Awaited<ReturnType<typeof lookForBatch>>>;

export async function lookForBatch(client: Client, batchId: string) {
  const info = await describeWorkflow(client, batchWorkflowId(batchId));
  if (info?.type !== BATCH_WORKFLOW) return null;
  const pending = await pendingActivity(client, info, 'runItems');
  const details = pending?.details;
  const written = batchMemo(info.memo);
  const memo = written && isBatchBoard(details) ? { ...written, ...details } : written;
  return {
    ...info,
    batchId,
    pending,
    memo,
    state: stateOf(info.status.name),
    startedAt: memo ? Date.parse(memo.startedAt) : info.startTime.getTime(),
    endedAt: info.closeTime?.toISOString() ?? null,
  };
}

/** @throws NotFoundError */
export async function findBatch(client: Client, batchId: string) {
  const found = await lookForBatch(client, batchId);
  if (found === null) throw notFound('batch', batchId, client.options.namespace);
  return found;
}

export async function viewOf(client: Client, batch: BatchReport): Promise<BatchView> {
  const { pending, memo, taskQueue, state, endedAt } = batch;
  const progress = memo && progressOf(memo, state, endedAt);
  const withoutMemo = state === 'running' ? state : state === 'failed' ? 'incomplete' : 'terminated';
  const words = [progress?.message];
  // The Temporal server shows an activity as pending also after the end of its workflow.
  if (endedAt === null) {
    const { paused, lastFailure: failure } = pending ?? {};
    if (paused) words.push('an operator paused its activity; `temporal activity unpause` continues it');
    else if (failure?.message && failure.applicationFailureInfo?.type !== POLL_AGAIN)
      words.push(`its activity fails, and is tried again: ${failure.message}`);
    words.push(await failedTask(client, batch));
    if ((await workersPolling(client, taskQueue)).length === 0) words.push(silence(taskQueue, 0));
  } else if (state === 'terminated' || state === 'timed-out' || (state === 'failed' && !progress))
    words.push(await failureOf(client, batch));
  return {
    state: progress?.state ?? withoutMemo,
    message: words.filter(Boolean).join('; ') || null,
    summary: state === 'terminated' ? null : progress,
  };
}

/** The error of a failed batch, or the reason of its termination. */
async function failureOf(client: Client, { workflowId, runId }: BatchReport) {
  const run = client.workflow.getHandle(workflowId, runId);
  const failed: unknown = await run.result().catch((error: unknown) => error);
  if (failed instanceof WorkflowFailedError) return failed.cause?.message ?? failed.message;
  throw failed;
}

/** The input of the latest run of a batch. @throws FollowUpError `BATCH_ITEMS_UNAVAILABLE` */
export async function inputOf(client: Client, batch: BatchReport) {
  const { workflowId, runId, batchId, memo } = batch;
  const run = await readOwnInput(client, workflowId, runId);
  if (run === undefined) throw new ItemsGoneError(batchId);
  // A caller who starts the workflow directly may give it any input.
  const { items, chunks, ...input } = (isRecord(run.input) ? run.input : {}) as BatchInput;
  // A run that continues as new has these fields in its memo only. Another client makes no digest.
  const known = input.digest ?? memo?.digest ?? null;
  const digest = known ?? (Array.isArray(items) ? itemsDigest(itemsOf(items)) : null);
  const board = memo ?? {
    ...EMPTY_BOARD,
    bound: 0,
    movingSince: null,
    startedEarlier: input.startedEarlier ?? null,
  };
  const count = chunks?.items ?? items?.length ?? 0;
  const source = { batchId, workflowId, runId, digest, items: count, chunks };
  const all = new ItemsOfBatch(client, source);
  const read = (chunk: number) => all.part(chunks?.firsts[chunk] ?? 0);
  return { items, chunks, digest, count, read, board, all };
}

/** The outcomes of a batch's items from the visibility list. Items that the list does not show are described by their IDs. */
export class BatchEnds {
  private readonly returned = new Set<string>();
  private readonly listed = new Map<string, ListedEnd>();
  private listedTo = 0;

  constructor(private readonly client: Client) {}

  /** The outcomes of the items that ended since the last call, ordered by end time. */
  async news(batch: BatchReport): Promise<BatchItemResult[]> {
    const { batchId, memo, startedAt, endedAt } = batch;
    const { all, board, count } = await inputOf(this.client, batch);
    const since = this.listedTo > 0 ? new Date(this.listedTo - LIST_LAG_MS) : undefined;
    await addEnds(this.client, batchId, this.listed, { since });
    for (const { closedAt } of this.listed.values()) this.listedTo = Math.max(this.listedTo, +closedAt);
    const open = await openOf(this.client, batchId);
    const started = mergeStarted(board, board.startedEarlier);
    const leftAt = endedAt ?? new Date().toISOString();
    const ends: BatchItemResult[] = [];
    const add = (workflowId: string, end: End, itemStartedAt: number, itemEndedAt: string) => {
      // While a retry runs, an item that it will try again has no outcome yet.
      if (endedAt === null && itemStartedAt < startedAt && mayTryAgain(end, memo?.again ?? null)) return;
      const [, projectId = '', jobId = '', requestId = ''] = workflowId.split(':').map(decodeURIComponent);
      ends.push({ workflowId, projectId, jobId, requestId, ...end, endedAt: itemEndedAt });
    };
    const unknown: [NamedItem, boolean][] = [];
    for (let number = 0; number < count; number += 1) {
      const item = await all.named(number);
      const { workflowId } = item;
      if (this.returned.has(workflowId) || open.has(workflowId)) continue;
      const known = this.listed.get(workflowId);
      const end = lastingEnd(known);
      const was = wasStarted(started, number);
      if (known && end) add(workflowId, end, +known.startedAt, known.closedAt.toISOString());
      // While the batch runs, items that may not have been started are not described.
      else if (known || was || (endedAt !== null && number < board.bound)) unknown.push([item, was]);
    }
    const foreignBefore = board.startedEarlier === null ? startedAt : 0;
    const isCancelled = endedAt !== null && memo?.ending === 'cancel-running';
    await eachConcurrently(unknown, async ([item, was]) => {
      const found = await findEnd(this.client, { ...item, foreignBefore });
      const { startedAt: itemStartedAt = 0, closedAt = leftAt } = found;
      const late = endedAt === null ? null : found.trouble;
      const end = found.end ?? late ?? (isCancelled ? endWithoutReceipt('left-running') : null);
      if (end !== null && (was || end.outcome !== 'missing'))
        add(item.workflowId, end, itemStartedAt, closedAt);
    });
    for (const end of ends) this.returned.add(end.workflowId);
    return ends.sort((one, other) => Date.parse(one.endedAt) - Date.parse(other.endedAt));
  }
}

/** What `watch` yields every two seconds. */
export interface BatchWatchUpdate {
  /** Null if the Temporal server did not respond. */
  readonly view: BatchView | null;
  /** The items that ended since the update before. */
  readonly ends: readonly BatchItemResult[];
}

const REFRESH_MS = 2_000;

export async function* looksAt(client: Client, batchId: string, signal: AbortSignal | undefined) {
  await findBatch(client, batchId);
  const reader = new BatchEnds(client);
  let ended: number | undefined = -1;
  for (let isOver = false; !isOver;) {
    let [view, ends]: [BatchView | null, readonly BatchItemResult[]] = [null, []];
    try {
      const report = await within(client, SERVER_LIMIT_MS, () => findBatch(client, batchId));
      view = await viewOf(client, report);
      const { memo, endedAt } = report;
      if (endedAt !== null || memo?.ended !== ended) ends = await reader.news(report);
      ended = memo?.ended;
      isOver = endedAt !== null;
    } catch (error) {
      // Outcomes that could not be read come with the next update.
      if (!isTransient(error)) throw error;
    }
    yield { view, ends };
    if (!isOver) await sleep(REFRESH_MS, undefined, { signal });
  }
}
