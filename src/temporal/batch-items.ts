import type { Client } from '@temporalio/client';
import {
  type BatchItem,
  sortByStartOrder,
  toBatchItems,
  MAX_INPUT_BYTES,
  toItemRequestId,
} from '../batch/items';
import type { BatchInput, BatchSettings, BatchSource } from '../batch/memo';
import { FollowUpError } from '../contract/follow-up-error';
import { chunkWorkflowId, sha256Hex, followUpWorkflowId, jobKeyFromWorkflowId } from '../contract/ids';
import type { FollowUpRequest } from '../contract/request';
import { readRunInput } from './workflow-executions';
import { RunCache } from './run-cache';

/** The place of a batch's items: chunks, or the input of this run of the batch. */
export interface ItemsSource
  extends Pick<BatchSettings, 'batchId' | 'digest' | 'items'>, Pick<BatchSource, 'chunks'> {
  readonly workflowId: string;
  readonly runId: string;
}

export interface ItemIdentity {
  readonly workflowId: string;
  readonly promptDigest: string;
}

/** Thrown when the Temporal server no longer has the items of a batch. */
export class BatchItemsUnavailableError extends FollowUpError {
  declare readonly code: 'BATCH_ITEMS_UNAVAILABLE';

  constructor(batchId: string) {
    const message =
      `The Temporal server no longer has the items of the batch ${JSON.stringify(batchId)}. The items were deleted, or are older ` +
      'than the retention period. Nothing was started. If the batch was not complete, start it again with the same items.';
    super('BATCH_ITEMS_UNAVAILABLE', message);
  }
}

/**
 * Reads the items of a batch when they are needed. The items are numbered in start order. Each method throws
 * BatchItemsUnavailableError if the items are no longer stored.
 */
export class BatchItemReader {
  constructor(
    protected readonly client: Client,
    protected readonly source: ItemsSource,
  ) {}

  /** Returns the identity of an item. */
  async identify(number: number): Promise<ItemIdentity> {
    return this.pick(await this.readIdentities(number), number);
  }

  /** Returns the request of an item, with its request ID. */
  async readRequest(number: number): Promise<FollowUpRequest> {
    const item = this.pick(await this.readChunkOfItem(number), number);
    return { ...item.request, requestId: toItemRequestId(this.source.batchId, item) };
  }

  /** Returns all items of the chunk to which an item belongs. */
  readChunkOfItem(number: number): Promise<readonly BatchItem[]> {
    const { first, end, workflowId, runId } = this.findChunkOfItem(number);
    const { batchId, chunks } = this.source;
    const read = async () => {
      const run = await readRunInput(this.client, workflowId, runId);
      const { items: list } = (run?.input ?? {}) as BatchInput;
      const given = Array.isArray(list) ? (list as FollowUpRequest[]) : [];
      const items = chunks
        ? (given as readonly unknown[] as BatchItem[])
        : sortByStartOrder(toBatchItems(given));
      if (items.length !== end - first) throw new BatchItemsUnavailableError(batchId);
      return items;
    };
    return itemCache.get(this.client, `${workflowId} ${runId}`, 2 * MAX_INPUT_BYTES, read);
  }

  /** Returns the number after the last item of a lane, which has the items for one job. @param number any item of the lane */
  readonly findLaneEnd = async (number: number): Promise<number> => {
    const job = jobKeyFromWorkflowId((await this.identify(number)).workflowId);
    for (let next = number; next < this.source.items;) {
      const { first, end } = this.findChunkOfItem(next);
      const list = await this.readIdentities(next);
      const other = list.findIndex(
        (item, index) => first + index >= next && jobKeyFromWorkflowId(item.workflowId) !== job,
      );
      if (other >= 0) return first + other;
      next = end;
    }
    return this.source.items;
  };

  private pick<T>(items: readonly T[], number: number): T {
    const item = items[number - this.findChunkOfItem(number).first];
    if (item === undefined) throw new BatchItemsUnavailableError(this.source.batchId);
    return item;
  }

  private readIdentities(number: number): Promise<readonly ItemIdentity[]> {
    const { first, end, workflowId, runId } = this.findChunkOfItem(number);
    const read = async () =>
      (await this.readChunkOfItem(number)).map((item) => {
        const { projectId, jobId, prompt } = item.request;
        return {
          workflowId: followUpWorkflowId(projectId, jobId, toItemRequestId(this.source.batchId, item)),
          promptDigest: sha256Hex(prompt),
        };
      });
    return identityCache.get(this.client, `${workflowId} ${runId}`, ITEM_BYTES * (end - first), read);
  }

  /**
   * Finds the input that has an item. Returns the run of this input, the number of the first item in the input, and the number
   * after the last item.
   */
  private findChunkOfItem(number: number) {
    const { batchId, digest, items, chunks, ...batchRun } = this.source;
    const { firsts = [0] } = chunks ?? {};
    const index = firsts.findLastIndex((first) => first <= number);
    const { [index]: first = 0, [index + 1]: end = items } = firsts;
    const run = chunks ? { workflowId: chunkWorkflowId(batchId, digest ?? '', index), runId: '' } : batchRun;
    return { first, end, ...run };
  }
}

/** The approximate size in bytes of an item's identity or outcome, for a cache. */
export const ITEM_BYTES = 300;

const identityCache = new RunCache<readonly ItemIdentity[]>();

/**
 * Each entry counts 2 MiB, because Node stores a string with a non-Latin-1 character in two bytes per
 * character.
 */
const itemCache = new RunCache<readonly BatchItem[]>();
