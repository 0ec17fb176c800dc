import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { Lane } from '../../core/batch/state';
import type { End } from '../../core/end';
import { keyword } from '../../core/starts';
import { cachesOf, type ItemsOfBatch, startItem } from '../../temporal/batch-items';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { describeWorkflow, ignoreClosed } from '../../temporal/existing-run';
import { findEnd, type FoundFollowUp } from '../../temporal/follow-up-end';
import { grpcError, isTransient } from '../../temporal/grpc-status';
import {
  endsOf,
  keepLatest,
  lastingEnd,
  type ListedEnd,
  listWorkflows,
  openOf,
  RUNNING,
} from '../../temporal/lists';

/** Questions to the server at once. */
export const AT_ONCE = 16;

/** The items of a batch as the Temporal server knows them: what runs, how it has ended, and their starts. */
export class BatchOnServer {
  /** The follow-ups of the batch that run, by the server's list: a hint, as it lags. */
  open = new Set<string>();

  /** @param alive is called between questions, of which there may be many */
  constructor(
    private readonly client: Client,
    private readonly batch: { readonly batchId: string; readonly runId: string },
    readonly items: ItemsOfBatch,
    private readonly alive: () => Promise<void>,
  ) {}

  async list(): Promise<void> {
    this.open = await openOf(this.client, this.batch.batchId);
  }

  /** The list may show for ever as open what has ended or was deleted. */
  async checkOpen(): Promise<void> {
    await eachConcurrently([...this.open], AT_ONCE, async (id) => {
      await this.alive();
      const found = await describeWorkflow(this.client, id);
      if (found === null || found.closeTime !== undefined) this.open.delete(id);
    });
  }

  /** What the run before has left open counts, also while the list does not show it yet. */
  async addOpen(lanes: readonly Lane[]): Promise<void> {
    const left = lanes.filter(([, , state]) => state !== 'free');
    await eachConcurrently(left, AT_ONCE, async ([item]) => {
      const { end, batchId } = await this.ask(item);
      // What somebody else has started must not be cancelled with the batch.
      if (end === null && batchId === this.batch.batchId)
        this.open.add((await this.items.named(item)).workflowId);
    });
  }

  async ask(item: number, foreignBefore = 0): Promise<FoundFollowUp> {
    const { workflowId, promptDigest } = await this.items.named(item);
    await this.alive();
    return findEnd(this.client, { workflowId, promptDigest, foreignBefore });
  }

  /** The end of an item in an earlier run of the batch, where the list tells it for good. */
  async endBefore(workflowId: string): Promise<End | undefined> {
    const ends = await cachesOf(this.client).ends.get(this.batch.runId, async () => {
      const listed = new Map<string, ListedEnd>();
      for await (const end of endsOf(this.client, this.batch.batchId)) {
        keepLatest(listed, end);
        await this.alive();
      }
      return listed;
    });
    return lastingEnd(ends.get(workflowId));
  }

  /** Whether somebody else has started a later item of a lane by its own name: its turn must not get another message. */
  async isOpenLater([next, end]: Lane): Promise<boolean> {
    const later = new Set<string>();
    for (let item = next + 1; item < end; item += 1) {
      const { workflowId, isOwnName } = await this.items.named(item);
      if (isOwnName) later.add(workflowId);
    }
    if (later.size === 0) return false;
    const { projectId, jobId } = await this.items.request(next);
    const ofJob = [keyword('AgentProject', projectId), keyword('AgentJob', jobId)];
    await this.alive();
    for await (const { workflowId } of listWorkflows(this.client, ofJob, { restriction: RUNNING }))
      if (later.has(workflowId)) return true;
    return false;
  }

  /**
   * @param retried the run that ended, for one more of the same follow-up; null for its first one
   * @param permission the milliseconds for which it may be started
   */
  async start(
    item: number,
    taskQueue: string,
    retried: string | null,
    permission: () => number,
  ): Promise<'started' | 'exists' | 'unknown'> {
    const request = await this.items.request(item);
    try {
      const leftMs = permission();
      if (leftMs <= 0) return 'unknown';
      await this.client.withDeadline(Date.now() + leftMs, () =>
        startItem(this.client, taskQueue, request, this.batch.batchId, retried),
      );
      return 'started';
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return 'exists';
      // The next look asks whether it has begun.
      if (isTransient(error)) return 'unknown';
      const words = grpcError(error)?.words;
      const { workflowId } = await this.items.named(item);
      throw words === undefined ? error : new Error(`the server refuses to start ${workflowId}: ${words}`);
    }
  }

  async cancel(workflowIds: Iterable<string>): Promise<void> {
    await eachConcurrently(workflowIds, AT_ONCE, async (workflowId) => {
      await this.client.workflow.getHandle(workflowId).cancel().catch(ignoreClosed);
    });
  }
}
