import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, type WorkflowExecutionDescription, WorkflowFailedError } from '@temporalio/client';
import { EMPTY_BOARD, isBatchBoard } from '../../batch/board';
import { toBatchItems } from '../../batch/items';
import { type BatchInput, type BatchMemo, readBatchMemo } from '../../batch/memo';
import { type BatchView, type BatchItemResult, toBatchProgress } from '../../batch/progress';
import { mergeStartedItems, isCertainlyStarted } from '../../batch/started-items';
import { isRecord } from '../../contract/checks';
import { type RecordedOutcome, createOutcomeWithoutReceipt, shouldRetry } from '../../contract/outcome';
import { batchWorkflowId } from '../../contract/ids';
import { BATCH_WORKFLOW, POLL_AGAIN } from '../../contract/names';
import { BatchItemsUnavailableError, BatchItemReader, type ItemIdentity } from '../../temporal/batch-items';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { getFirstRunId, readRunInput, type RunState, toRunState } from '../../temporal/workflow-executions';
import { fetchOutcome } from '../../temporal/fetch-outcome';
import { isTransient } from '../../temporal/grpc-status';
import {
  collectOutcomes,
  finalOutcome,
  LIST_LAG_MS,
  type ListedOutcome,
  listRunningIds,
} from '../../temporal/visibility';
import { findPendingActivity, listPollingWorkers, type PendingActivity } from '../../temporal/raw-requests';
import { SERVER_TIMEOUT_MS, withTimeout } from '../call-runner';
import { readTaskFailure } from '../description';
import { explainMissingResponse, notFoundError, runNotFoundError } from '../errors';
import { describeNamedRun } from '../named-run';
import { itemsDigest } from './check';

/** The Temporal server's description of a run of a batch. After a reset, the memo may be as old as the reset point. */
export type BatchDescription = Omit<WorkflowExecutionDescription, 'memo'> & {
  readonly batchId: string;
  readonly pending: PendingActivity | undefined;
  readonly memo: BatchMemo | null;
  readonly state: RunState;
  readonly startedAt: number;
  readonly endedAt: string | null;
};

/** Describes a run of a batch; null if no batch has this ID or run. @param runId undefined for the latest run */
export async function describeBatch(
  client: Client,
  batchId: string,
  runId?: string,
): Promise<BatchDescription | null> {
  const info = await describeNamedRun(client, { workflowId: batchWorkflowId(batchId), runId });
  if (info?.type !== BATCH_WORKFLOW) return null;
  const pending = await findPendingActivity(client, info, 'runItems');
  const details = pending?.details;
  const storedMemo = readBatchMemo(info.memo);
  const memo = storedMemo && isBatchBoard(details) ? { ...storedMemo, ...details } : storedMemo;
  return {
    ...info,
    batchId,
    pending,
    memo,
    state: toRunState(info.status.name),
    startedAt: memo ? Date.parse(memo.startedAt) : info.startTime.getTime(),
    endedAt: info.closeTime?.toISOString() ?? null,
  };
}

/** Describes a run of a batch. @param runId undefined for the latest run @throws NotFoundError */
export async function findBatch(client: Client, batchId: string, runId?: string): Promise<BatchDescription> {
  const found = await describeBatch(client, batchId, runId);
  if (found !== null) return found;
  if (runId !== undefined) throw runNotFoundError('batch', batchId, runId);
  throw notFoundError('batch', batchId, client.options.namespace);
}

export async function readBatchView(client: Client, batch: BatchDescription): Promise<BatchView> {
  const { pending, memo, taskQueue, state, endedAt } = batch;
  const progress = memo && toBatchProgress(memo, state, endedAt);
  const stateWithoutMemo = state === 'running' ? state : state === 'failed' ? 'incomplete' : 'terminated';
  const messages = [progress?.message];
  // The Temporal server describes an activity as pending even after its workflow has ended.
  if (endedAt === null) {
    const { paused, lastFailure: failure } = pending ?? {};
    if (paused) messages.push('the activity runItems is paused; resume it with `temporal activity unpause`');
    else if (failure?.message && failure.applicationFailureInfo?.type !== POLL_AGAIN)
      messages.push(`the activity runItems failed and is retried: ${failure.message}`);
    messages.push(await readTaskFailure(client, batch));
    if ((await listPollingWorkers(client, taskQueue))?.length === 0)
      messages.push(explainMissingResponse(taskQueue, 0));
  } else if (state === 'terminated' || state === 'timed-out' || (state === 'failed' && !progress))
    messages.push(await readFailureText(client, batch));
  return {
    state: progress?.state ?? stateWithoutMemo,
    message: messages.filter(Boolean).join('; ') || null,
    summary: state === 'terminated' ? null : progress,
  };
}

/** Returns the error message of a failed batch, or the reason why a batch was terminated. */
async function readFailureText(client: Client, { workflowId, runId }: BatchDescription) {
  const run = client.workflow.getHandle(workflowId, runId);
  const failed: unknown = await run.result().catch((error: unknown) => error);
  if (failed instanceof WorkflowFailedError) return failed.cause?.message ?? failed.message;
  throw failed;
}

/** Reads the input of the run that `batch` describes. @throws FollowUpError `BATCH_ITEMS_UNAVAILABLE` */
export async function readBatchInput(client: Client, batch: BatchDescription) {
  const { workflowId, runId, batchId, memo } = batch;
  const run = await readRunInput(client, workflowId, runId);
  if (run === undefined) throw new BatchItemsUnavailableError(batchId);
  // A caller who starts the workflow directly may give it any input.
  const { items, chunks, ...input } = (isRecord(run.input) ? run.input : {}) as BatchInput;
  // A run that continues an earlier run has the digest only in its memo. A batch that was started by a schedule, or without
  // `FollowUpClient`, has no digest.
  const known = input.digest ?? memo?.digest ?? null;
  const digest = known ?? (Array.isArray(items) ? itemsDigest(toBatchItems(items)) : null);
  const board = memo ?? {
    ...EMPTY_BOARD,
    startLimit: 0,
    activityStartedAt: null,
    startedEarlier: input.startedEarlier ?? null,
  };
  const count = chunks?.items ?? items?.length ?? 0;
  const source = { batchId, workflowId, runId, digest, items: count, chunks };
  const itemReader = new BatchItemReader(client, source);
  const read = (chunk: number) => itemReader.readChunkOfItem(chunks?.firsts[chunk] ?? 0);
  return { items, chunks, digest, count, read, board, itemReader };
}

/**
 * Reads the outcomes of a batch's items from the visibility list. For an item that is not in the list, or whose listed outcome is not
 * final, the reader requests the description of the follow-up from the Temporal server.
 */
export class BatchResultReader {
  private readonly returnedIds = new Set<string>();
  private readonly listedOutcomes = new Map<string, ListedOutcome>();
  private listedUntilMs = 0;

  constructor(private readonly client: Client) {}

  /** The number of returned outcomes. */
  get returned(): number {
    return this.returnedIds.size;
  }

  /** Returns the outcomes of the items that ended since the last call, ordered by end time. */
  async readNew(batch: BatchDescription): Promise<BatchItemResult[]> {
    const { batchId, memo, startedAt, endedAt } = batch;
    const { itemReader, board, count } = await readBatchInput(this.client, batch);
    const since = this.listedUntilMs > 0 ? new Date(this.listedUntilMs - LIST_LAG_MS) : undefined;
    await collectOutcomes(this.client, batchId, this.listedOutcomes, { since });
    for (const { closedAt } of this.listedOutcomes.values())
      this.listedUntilMs = Math.max(this.listedUntilMs, +closedAt);
    const runningIds = await listRunningIds(this.client, batchId);
    const started = mergeStartedItems(board, board.startedEarlier);
    const endedAtOrNow = endedAt ?? new Date().toISOString();
    const results: BatchItemResult[] = [];
    // While a retry runs, an item that the retry will start again has no outcome yet.
    const willRetry = (outcome: RecordedOutcome, itemStartedAt: number) =>
      endedAt === null && itemStartedAt < startedAt && shouldRetry(outcome, memo?.retryScope ?? null);
    const addResult = (
      workflowId: string,
      outcome: RecordedOutcome,
      itemStartedAt: number,
      itemEndedAt: string,
    ) => {
      if (willRetry(outcome, itemStartedAt)) return;
      const [, projectId = '', jobId = '', requestId = ''] = workflowId.split(':').map(decodeURIComponent);
      results.push({ workflowId, projectId, jobId, requestId, ...outcome, endedAt: itemEndedAt });
    };
    // After the end, the list may still show an item as running.
    const isListLate = endedAt !== null && Date.now() - Date.parse(endedAt) < LIST_LAG_MS;
    const itemsToDescribe: [ItemIdentity, boolean][] = [];
    for (let number = 0; number < count; number += 1) {
      const item = await itemReader.identify(number);
      const { workflowId } = item;
      const isListedAsRunning = runningIds.has(workflowId);
      if (this.returnedIds.has(workflowId) || (isListedAsRunning && !isListLate)) continue;
      const known = isListedAsRunning ? undefined : this.listedOutcomes.get(workflowId);
      // The list may also show the earlier outcome of an item that the retry has just started. A later call returns the new one.
      if (known?.outcome && willRetry(known.outcome, +known.startedAt)) continue;
      const outcome = finalOutcome(known);
      const wasItemStarted = isListedAsRunning || isCertainlyStarted(started, number);
      if (known && outcome) addResult(workflowId, outcome, +known.startedAt, known.closedAt.toISOString());
      // While the batch runs, an item that is not in the list is described only if the item was certainly started, because each
      // description is a request.
      else if (known || wasItemStarted || (endedAt !== null && number < board.startLimit))
        itemsToDescribe.push([item, wasItemStarted]);
    }
    const isCancelled = endedAt !== null && memo?.stopReason === 'cancel-running';
    await eachConcurrently(itemsToDescribe, async ([item, wasStarted]) => {
      const found = await fetchOutcome(this.client, item);
      const { startedAt: itemStartedAt = 0, closedAt = endedAtOrNow } = found;
      const unreadableOutcome = endedAt === null ? null : found.unreadableOutcome;
      const outcome =
        found.outcome ??
        unreadableOutcome ??
        (isCancelled && !runningIds.has(item.workflowId)
          ? createOutcomeWithoutReceipt('left-running')
          : null);
      if (outcome !== null && (wasStarted || outcome.outcome !== 'missing'))
        addResult(item.workflowId, outcome, itemStartedAt, closedAt);
    });
    for (const { workflowId } of results) this.returnedIds.add(workflowId);
    return results.sort((one, other) => Date.parse(one.endedAt) - Date.parse(other.endedAt));
  }
}

/** A report of `watch`, which yields one every two seconds. */
export interface BatchWatchUpdate {
  /** The state and the progress of the batch. Null if the Temporal server did not respond. */
  readonly view: BatchView | null;
  /** The outcomes of the items that ended since the previous report. */
  readonly results: readonly BatchItemResult[];
}

const REFRESH_MS = 2_000;

/** Yields reports until the end of one named run: the run that is the latest when the Temporal server first responds. @throws NotFoundError */
export async function* watchBatch(client: Client, batchId: string, signal: AbortSignal) {
  let runId: string | undefined;
  const reader = new BatchResultReader(client);
  let lastEndedCount: number | undefined = -1;
  let changedAt = 0;
  for (let hasEnded = false; !hasEnded;) {
    let [view, results]: [BatchView | null, readonly BatchItemResult[]] = [null, []];
    try {
      const batch = await withTimeout(client, SERVER_TIMEOUT_MS, () => findBatch(client, batchId, runId));
      runId ??= getFirstRunId(batch);
      view = await readBatchView(client, batch);
      const { memo, endedAt } = batch;
      const hasChanged = memo?.ended !== lastEndedCount;
      if (hasChanged) changedAt = Date.now();
      // The list may show an end later than the memo of the batch. A retry also returns outcomes of items that it has not counted.
      const isComplete = !memo || (memo.retryScope === null && reader.returned >= memo.ended);
      const mayLackOutcomes = !isComplete && Date.now() - changedAt < LIST_LAG_MS;
      if (endedAt !== null || hasChanged || mayLackOutcomes) results = await reader.readNew(batch);
      lastEndedCount = memo?.ended;
      hasEnded = endedAt !== null;
    } catch (error) {
      // After a transient error, the next report has the outcomes.
      if (!isTransient(error)) throw error;
    }
    yield { view, results };
    if (!hasEnded) await sleep(REFRESH_MS, undefined, { signal });
  }
}
