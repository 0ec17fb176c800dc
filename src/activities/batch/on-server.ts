import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { Begun, Lane } from '../../core/batch/state';
import type { End } from '../../core/end';
import { keyword } from '../../core/starts';
import { type ItemsOfBatch, startItem } from '../../temporal/batch-items';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { describeWorkflow, ignoreClosed, stateOf } from '../../temporal/existing-run';
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
      const state = stateOf((await describeWorkflow(this.client, id))?.status.name ?? 'COMPLETED');
      if (state !== 'running') this.open.delete(id);
    });
  }

  /** What the run before has left open counts, also while the list does not show it yet. */
  async addOpen(lanes: readonly Lane[]): Promise<void> {
    const left = lanes.filter(([, , state]) => state !== 'free');
    await eachConcurrently(left, AT_ONCE, async ([item]) => {
      const { workflowId } = await this.items.named(item);
      if (this.open.has(workflowId)) return;
      const { end, batchId } = await this.ask(item);
      // What somebody else has started must not be cancelled with the batch.
      if (end === null && batchId === this.batch.batchId) this.open.add(workflowId);
    });
  }

  async ask(item: number, foreignBefore = 0): Promise<FoundFollowUp> {
    const { workflowId, promptDigest } = await this.items.named(item);
    await this.alive();
    return findEnd(this.client, { workflowId, promptDigest, foreignBefore });
  }

  /**
   * Asks for everything that the runs before may have begun: from then on it is known. Items of a lane are begun in their
   * order, so that nothing behind one that does not exist was begun.
   */
  async resolved(begun: Begun): Promise<Begun> {
    const lanes = [...begun.lanes];
    let { cursor } = begun;
    while (cursor < begun.bound) {
      const end = await this.items.endOfLane(cursor);
      lanes.push([cursor, end, 'free']);
      cursor = end;
    }
    const known: Lane[] = [];
    await eachConcurrently(lanes, AT_ONCE, async ([first, end, state]) => {
      let next = first;
      while (next < end && (await this.ask(next)).end?.outcome !== 'gone') next += 1;
      // The last one that was begun may be open. One that is known to have been begun and is not found is gone.
      known.push(next > first ? [next - 1, end, 'open'] : [first, end, state === 'open' ? 'open' : 'free']);
    });
    return { ...begun, bound: cursor, cursor, lanes: known, isExact: true };
  }

  /** The end of an item in an earlier run of the batch, where the list tells it for good. */
  async endBefore(workflowId: string): Promise<End | undefined> {
    const ends = await endsBefore(this.client, this.batch.runId, async () => {
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
    const { projectId, jobId } = (await this.items.request(next)).request;
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
    const { request } = await this.items.request(item);
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

  async cancelOpen(): Promise<void> {
    await eachConcurrently([...this.open], AT_ONCE, (workflowId) => this.cancel(workflowId));
  }

  async cancel(workflowId: string): Promise<void> {
    await this.client.workflow.getHandle(workflowId).cancel().catch(ignoreClosed);
  }
}

/** How the items of a batch had ended, by the batch's run: a retry of many items asks for it again and again. */
const known = new WeakMap<Client, Map<string, Promise<ReadonlyMap<string, ListedEnd>>>>();

/** Batches at a time whose earlier ends a worker keeps: 100,000 ends have some 30 MiB. */
const MAX_KNOWN = 3;

function endsBefore(
  client: Client,
  runId: string,
  read: () => Promise<ReadonlyMap<string, ListedEnd>>,
): Promise<ReadonlyMap<string, ListedEnd>> {
  const kept = known.get(client) ?? new Map<string, Promise<ReadonlyMap<string, ListedEnd>>>();
  known.set(client, kept);
  const ends = kept.get(runId) ?? read();
  kept.delete(runId);
  kept.set(runId, ends);
  ends.catch(() => kept.delete(runId));
  for (const oldest of [...kept.keys()].slice(0, -MAX_KNOWN)) kept.delete(oldest);
  return ends;
}
