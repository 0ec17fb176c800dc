import { Context } from '@temporalio/activity';
import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { type BatchBoard, type ItemFact, isPossiblyStarted } from '../../batch/board';
import { BATCH_PRIORITY } from '../../batch/items';
import { readBatchMemo, type BatchMemo } from '../../batch/memo';
import type { Lane } from '../../batch/started-items';
import { checkRequest } from '../../contract/check-request';
import { fairnessKey } from '../../contract/ids';
import { FOLLOW_UP_WORKFLOW } from '../../contract/names';
import { ITEM_BYTES, BatchItemReader, type ItemsSource } from '../../temporal/batch-items';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { describeWorkflow } from '../../temporal/workflow-executions';
import { fetchOutcome } from '../../temporal/fetch-outcome';
import { findGrpcError, isTransient } from '../../temporal/grpc-status';
import { RunCache } from '../../temporal/run-cache';
import { collectOutcomes, finalOutcome, type ListedOutcome, listRunningIds } from '../../temporal/visibility';
import { RETRY_OPTIONS, retryClient, startOptions } from '../../temporal/start-options';
import { currentRun } from '../attempt';
import { requestSendPermission } from '../send-message';

/** The age of the latest heartbeat from which `keepAlive` sends another one. The heartbeat timeout of `runItems` is 30 s. */
const HEARTBEAT_MS = 5_000;

export async function fetchBatchMemo(): Promise<BatchMemo> {
  const { workflowId, runId } = currentRun();
  const { memo, raw } = await Context.current().client.workflow.getHandle(workflowId, runId).describe();
  if (raw.workflowExtendedInfo?.lastResetTime) throw ApplicationFailure.nonRetryable('the batch was reset');
  const parsedMemo = readBatchMemo(memo);
  if (parsedMemo === null) throw new Error("the batch's memo can't be read");
  return parsedMemo;
}

/**
 * The result of `start`:
 * - a fact about the item
 * - `unknown` if a later round must query the item
 * - `rejected` if the Temporal server rejected the start, or if the item's request is invalid or no longer stored
 */
export type StartResult = ItemFact | 'unknown' | { readonly kind: 'rejected'; readonly reason: string };

const listedOutcomesCache = new RunCache<ReadonlyMap<string, ListedOutcome>>();

/** Collects facts about a batch's items from the Temporal server, and starts items. */
export class BatchItemStore extends BatchItemReader {
  private recordedTick = performance.now();

  /** @param board the latest board, which the next heartbeat records */
  constructor(
    client: Client,
    source: ItemsSource,
    public board: BatchBoard,
  ) {
    super(client, source);
  }

  /**
   * Records the board with the Temporal server.
   *
   * @returns a function that returns for how many milliseconds items may still be started
   */
  async recordBoard(board: BatchBoard): Promise<() => number> {
    this.board = board;
    this.recordedTick = performance.now();
    return requestSendPermission(board);
  }

  /** Records the board again if the latest heartbeat is old, because there may be many requests between two heartbeats. */
  private readonly keepAlive = async (): Promise<void> => {
    if (performance.now() - this.recordedTick > HEARTBEAT_MS) await this.recordBoard(this.board);
  };

  /**
   * Lists the running follow-ups of the batch, with one visibility query.
   *
   * @param isChecked whether each listed follow-up is described too. The list may show a follow-up as running long after the
   * follow-up has ended or was deleted.
   * @param added lanes whose next item is described and added if it is running, because the list may not show it yet
   */
  async listRunning(isChecked: boolean, added: readonly Lane[]): Promise<ReadonlySet<string>> {
    const running = await listRunningIds(this.client, this.source.batchId);
    await eachConcurrently(isChecked ? [...running] : [], async (id) => {
      await this.keepAlive();
      const found = await describeWorkflow(this.client, id);
      if (!found || found.closeTime) running.delete(id);
    });
    await eachConcurrently(added, async ({ next, state }) => {
      const fact = state === 'pending' ? null : await this.describe(next);
      // A follow-up that another client started must not be cancelled with the batch.
      if (fact?.kind === 'running' && fact.isStartedByBatch) running.add(fact.workflowId);
    });
    return running;
  }

  /** Returns the fact about the next item of a lane; null if the item was not started. */
  async getFact(
    board: BatchBoard,
    { stopReason }: BatchMemo,
    lane: Lane,
    running: ReadonlySet<string>,
  ): Promise<ItemFact | null> {
    const { workflowId } = await this.identify(lane.next);
    if (running.has(workflowId) && stopReason !== 'cancel-running')
      return { kind: 'running', workflowId, isStartedByBatch: true };
    if (!isPossiblyStarted(board, lane)) return null;
    const outcome = lane.state === 'pending' ? await this.readListedOutcome(workflowId) : undefined;
    return outcome ? { kind: 'ended', workflowId, outcome } : this.describe(lane.next);
  }

  private async describe(item: number): Promise<ItemFact> {
    const identity = await this.identify(item);
    const { workflowId } = identity;
    await this.keepAlive();
    const found = await fetchOutcome(this.client, identity);
    const { outcome, unreadableOutcome, runId, startedAt, closedAt, batchId } = found;
    if (outcome === null)
      return unreadableOutcome === undefined
        ? { kind: 'running', workflowId, isStartedByBatch: batchId === this.source.batchId }
        : { kind: 'unreadable', workflowId, reason: unreadableOutcome.message ?? unreadableOutcome.outcome };
    const at = closedAt === undefined ? undefined : Date.parse(closedAt);
    return { kind: 'ended', workflowId, outcome, runId, startedAt, closedAt: at };
  }

  /** Returns the outcome of an item from an earlier run of the batch, if the visibility list shows an outcome that can't change. */
  private async readListedOutcome(workflowId: string) {
    const { client, keepAlive, source } = this;
    const read = () =>
      collectOutcomes(client, source.batchId, new Map<string, ListedOutcome>(), { keepAlive });
    const outcomes = await listedOutcomesCache.get(client, source.runId, ITEM_BYTES * source.items, read);
    return finalOutcome(outcomes.get(workflowId));
  }

  /**
   * Starts the next item of a lane. If the lane has a run to retry, this method starts another run of the follow-up. Otherwise,
   * it starts the item only if no workflow has its ID.
   */
  async start(lane: Lane, permission: () => number): Promise<StartResult> {
    const { next: item, retriedRunId } = lane;
    const { workflowId } = await this.identify(item);
    try {
      if (await this.startBeforeExpiry(item, retriedRunId, permission))
        return { kind: 'running', workflowId, isStartedByBatch: true };
      return 'unknown';
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) {
        if (isTransient(error)) return 'unknown';
        return { kind: 'rejected', reason: findGrpcError(error)?.text ?? String(error) };
      }
    }
    const fact = await this.describe(item);
    if (fact.kind !== 'ended') return 'unknown';
    // The Temporal server starts no other run if the workflow ID belongs to another message, or if the run to retry is completed.
    const isFinal =
      fact.outcome.outcome === 'conflict' || (retriedRunId !== undefined && fact.runId === retriedRunId);
    return isFinal ? { ...fact, isFinal } : 'unknown';
  }

  /** Starts an item while the permission is valid. @returns false if the permission has expired */
  private async startBeforeExpiry(item: number, retriedRunId: string | undefined, permission: () => number) {
    const request = await this.readRequest(item);
    const checked = checkRequest(request);
    if (!checked.ok) throw new TypeError("the item's request is not valid");
    const start = {
      ...startOptions(checked.plan, this.source.batchId),
      ...(retriedRunId !== undefined && RETRY_OPTIONS),
      taskQueue: Context.current().info.taskQueue,
      args: [request] as [unknown],
      // The activities of the follow-up inherit the priority, so that single follow-ups come first.
      priority: { ...BATCH_PRIORITY, fairnessKey: fairnessKey(request.projectId) },
    };
    const leftMs = permission();
    if (leftMs <= 0) return false;
    const client = retriedRunId === undefined ? this.client : retryClient(this.client, retriedRunId);
    await client.withDeadline(Date.now() + leftMs, () => client.workflow.start(FOLLOW_UP_WORKFLOW, start));
    return true;
  }
}
