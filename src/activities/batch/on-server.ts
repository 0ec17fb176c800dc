import { Context } from '@temporalio/activity';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { BATCH_PRIORITY } from '../../core/batch/items';
import { batchMemo, type BatchMemo, type Lane } from '../../core/batch/state';
import { checkRequest } from '../../core/check-request';
import { fairnessKey } from '../../core/ids';
import { FOLLOW_UP_WORKFLOW } from '../../core/names';
import { keyword } from '../../core/starts';
import { ITEM_BYTES, ItemsOfBatch } from '../../temporal/batch-items';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { describeWorkflow } from '../../temporal/existing-run';
import { findEnd } from '../../temporal/follow-up-end';
import { grpcError, isTransient } from '../../temporal/grpc-status';
import { Kept } from '../../temporal/kept';
import { addEnds, lastingEnd, type ListedEnd, listWorkflows, RUNNING } from '../../temporal/lists';
import { retryOptions, startOptions } from '../../temporal/start-follow-up';
import { currentRun } from '../attempt';

export async function readMemo(): Promise<BatchMemo> {
  const { workflowId, runId } = currentRun();
  const { memo, raw } = await Context.current().client.workflow.getHandle(workflowId, runId).describe();
  if (raw.workflowExtendedInfo?.lastResetTime)
    throw ApplicationFailure.nonRetryable('somebody has reset the batch');
  const own = batchMemo(memo);
  if (own === null) throw new Error("the memo of the batch can't be read");
  return own;
}

const endsBefore = new Kept<ReadonlyMap<string, ListedEnd>>();

export class ItemsOnServer extends ItemsOfBatch {
  /** Those that take a place: what runs by the list of the server, which lags, and what the lanes have or may have begun. */
  open = new Set<string>();

  /** The list may show for ever as open what has ended or was deleted. */
  async checkOpen(): Promise<void> {
    await eachConcurrently([...this.open], async (id) => {
      await this.alive();
      const found = await describeWorkflow(this.client, id);
      if (!found || found.closeTime) this.open.delete(id);
    });
  }

  /** What the run before has left open counts, also while the list does not show it yet. */
  async addOpen(lanes: readonly Lane[]): Promise<void> {
    const left = lanes.filter(([, , state]) => state !== 'free');
    await eachConcurrently(left, async ([item]) => {
      const { end, batchId } = await this.ask(item);
      // What somebody else has started must not be cancelled with the batch.
      if (end === null && batchId === this.source.batchId) this.open.add((await this.named(item)).workflowId);
    });
  }

  async ask(item: number, foreignBefore = 0) {
    const { workflowId, promptDigest } = await this.named(item);
    await this.alive();
    return findEnd(this.client, { workflowId, promptDigest, foreignBefore });
  }

  /** The end of an item in an earlier run of the batch, where the list tells it for good. */
  async endBefore(workflowId: string) {
    const { client, alive, source } = this;
    const read = () => addEnds(client, source.batchId, new Map<string, ListedEnd>(), { alive });
    const ends = await endsBefore.get(client, source.runId, ITEM_BYTES * source.items, read);
    return lastingEnd(ends.get(workflowId));
  }

  /** Whether somebody else has started a later item of a lane: its turn must not get another message. */
  async isOpenLater([next, end]: Lane): Promise<boolean> {
    const later = new Set<string>();
    for (let item = next + 1; item < end; item += 1) {
      const { workflowId, isOwnName } = await this.named(item);
      if (isOwnName) later.add(workflowId);
    }
    if (later.size === 0) return false;
    const { projectId, jobId } = await this.request(next);
    const ofJob = [keyword('AgentProject', projectId), keyword('AgentJob', jobId)];
    await this.alive();
    for await (const { workflowId } of listWorkflows(this.client, ofJob, { restriction: RUNNING }))
      if (later.has(workflowId)) return true;
    return false;
  }

  /** @param retried the run that ended, for one more of the same follow-up; null to start only one that does not exist */
  async start(item: number, retried: string | null, permission: () => number) {
    const request = await this.request(item);
    const checked = checkRequest(request);
    if (!checked.ok) throw new TypeError('an item is started that was not checked');
    const start = {
      ...startOptions(checked.plan, this.source.batchId),
      ...(retried !== null && retryOptions(retried)),
      taskQueue: Context.current().info.taskQueue,
      args: [request] as [unknown],
      // Its activities inherit the priority: single follow-ups go first.
      priority: { ...BATCH_PRIORITY, fairnessKey: fairnessKey(request.projectId) },
    };
    try {
      const leftMs = permission();
      if (leftMs <= 0) return 'unknown';
      await this.client.withDeadline(Date.now() + leftMs, () =>
        this.client.workflow.start(FOLLOW_UP_WORKFLOW, start),
      );
      return 'started';
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return 'exists';
      // The next look asks whether it has begun.
      if (isTransient(error)) return 'unknown';
      const words = grpcError(error)?.words;
      throw words === undefined
        ? error
        : new Error(`the server refuses to start ${start.workflowId}: ${words}`);
    }
  }
}
