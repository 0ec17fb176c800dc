import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, WorkflowFailedError } from '@temporalio/client';
import { itemsOf } from '../../core/batch/items';
import { type BatchView, type ItemEnd, progressOf } from '../../core/batch/progress';
import { batchMemo, type BatchInput, begunBy, isPosition, START, wasBegun } from '../../core/batch/state';
import { isRecord } from '../../core/checks';
import { type End, endWithoutReceipt, mayTryAgain } from '../../core/end';
import { batchWorkflowId } from '../../core/ids';
import { BATCH_WORKFLOW, POLL_AGAIN } from '../../core/names';
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

/** The latest run of a batch as the server knows it. After a reset its memo may be as old as the point of the reset. */
export type BatchReport = NonNullable<Awaited<ReturnType<typeof lookForBatch>>>;

export async function lookForBatch(client: Client, batchId: string) {
  const info = await describeWorkflow(client, batchWorkflowId(batchId));
  if (info?.type !== BATCH_WORKFLOW) return null;
  const pending = await pendingActivity(client, info, 'runItems');
  const details = pending?.details;
  const written = batchMemo(info.memo);
  const memo = written && isPosition(details) ? { ...written, ...details } : written;
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
  // The server shows an activity as pending also after the end of its workflow.
  if (endedAt === null) {
    const { paused, lastFailure: failure } = pending ?? {};
    if (paused) words.push('somebody has paused its activity; `temporal activity unpause` lets it go on');
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

/** With what it has failed, or why somebody has terminated it. */
async function failureOf(client: Client, { workflowId, runId }: BatchReport) {
  const run = client.workflow.getHandle(workflowId, runId);
  const failed: unknown = await run.result().catch((error: unknown) => error);
  if (failed instanceof WorkflowFailedError) return failed.cause?.message ?? failed.message;
  throw failed;
}

/** What the latest run of a batch was started with. @throws FollowUpError `BATCH_FORGOTTEN` */
export async function inputOf(client: Client, batch: BatchReport) {
  const { workflowId, runId, batchId, memo } = batch;
  const run = await readOwnInput(client, workflowId, runId);
  if (run === undefined) throw new ItemsGoneError(batchId);
  // Whoever starts a batch by its workflow may give it anything.
  const { items, chunks, ...input } = (isRecord(run.input) ? run.input : {}) as BatchInput;
  // A run that continues as new has no such fields in its input.
  const known = input.digest ?? memo?.digest ?? null;
  // Another client than ours makes none.
  const digest = known ?? (Array.isArray(items) ? itemsDigest(itemsOf(items)) : null);
  const position = memo ?? { ...START, begun: input.begun ?? null };
  const count = chunks?.items ?? items?.length ?? 0;
  const source = { batchId, workflowId, runId, digest, items: count, chunks };
  const all = new ItemsOfBatch(client, source);
  const read = (chunk: number) => all.part(chunks?.firsts[chunk] ?? 0);
  return { items, chunks, digest, count, read, position, all };
}

/** How the items of a batch have ended, by the server's list. What that does not know is asked for by its id. */
export class BatchEnds {
  private readonly told = new Set<string>();
  private readonly listed = new Map<string, ListedEnd>();
  private listedTo = 0;

  constructor(private readonly client: Client) {}

  /** What has ended since the last question, in the order of the ends. */
  async news(batch: BatchReport): Promise<ItemEnd[]> {
    const { batchId, memo, startedAt, endedAt } = batch;
    const { all, position, count } = await inputOf(this.client, batch);
    const since = this.listedTo > 0 ? new Date(this.listedTo - LIST_LAG_MS) : undefined;
    await addEnds(this.client, batchId, this.listed, { since });
    for (const { closedAt } of this.listed.values()) this.listedTo = Math.max(this.listedTo, +closedAt);
    const open = await openOf(this.client, batchId);
    const begun = begunBy(position);
    const leftAt = endedAt ?? new Date().toISOString();
    const ends: ItemEnd[] = [];
    const tell = (workflowId: string, end: End, begunAt: number, settledAt: string) => {
      // While a retry runs, an item that it will try again has no end yet.
      if (endedAt === null && begunAt < startedAt && mayTryAgain(end, memo?.again ?? null)) return;
      const [, projectId = '', jobId = '', requestId = ''] = workflowId.split(':').map(decodeURIComponent);
      ends.push({ workflowId, projectId, jobId, requestId, ...end, settledAt });
    };
    const unknown: [NamedItem, boolean][] = [];
    for (let number = 0; number < count; number += 1) {
      const item = await all.named(number);
      const { workflowId } = item;
      if (this.told.has(workflowId) || open.has(workflowId)) continue;
      const known = this.listed.get(workflowId);
      const end = lastingEnd(known);
      const was = wasBegun(begun, number);
      if (known && end) tell(workflowId, end, +known.startedAt, known.closedAt.toISOString());
      // While the batch runs, nothing is asked for that has perhaps not begun.
      else if (known || was || (endedAt !== null && number < position.bound)) unknown.push([item, was]);
    }
    const foreignBefore = position.begun === null ? startedAt : 0;
    const isCancelled = endedAt !== null && memo?.ending === 'cancel-running';
    await eachConcurrently(unknown, async ([item, was]) => {
      const found = await findEnd(this.client, { ...item, foreignBefore });
      const { startedAt: begunAt = 0, closedAt = leftAt } = found;
      const late = endedAt === null ? null : found.trouble;
      const end = found.end ?? late ?? (isCancelled ? endWithoutReceipt('left-running') : null);
      if (end !== null && (was || end.outcome !== 'gone')) tell(item.workflowId, end, begunAt, closedAt);
    });
    for (const end of ends) this.told.add(end.workflowId);
    return ends.sort((one, other) => Date.parse(one.settledAt) - Date.parse(other.settledAt));
  }
}

/** One look at a batch that is being watched. */
export interface BatchLook {
  /** Null if the server did not answer. */
  readonly view: BatchView | null;
  /** The items that have settled since the look before. */
  readonly ends: readonly ItemEnd[];
}

const REFRESH_MS = 2_000;

export async function* looksAt(client: Client, batchId: string, signal: AbortSignal | undefined) {
  await findBatch(client, batchId);
  const reader = new BatchEnds(client);
  let settled: number | undefined = -1;
  for (let isOver = false; !isOver;) {
    let [view, ends]: [BatchView | null, readonly ItemEnd[]] = [null, []];
    try {
      const report = await within(client, SERVER_LIMIT_MS, () => findBatch(client, batchId));
      view = await viewOf(client, report);
      const { memo, endedAt } = report;
      if (endedAt !== null || memo?.settled !== settled) ends = await reader.news(report);
      settled = memo?.settled;
      isOver = endedAt !== null;
    } catch (error) {
      // Ends that could not be read come with the next look.
      if (!isTransient(error)) throw error;
    }
    yield { view, ends };
    if (!isOver) await sleep(REFRESH_MS, undefined, { signal });
  }
}
