import type { Client } from '@temporalio/client';
import { type BatchItem, inStartOrder, itemsOf, MAX_INPUT_BYTES, requestIdOf } from '../core/batch/items';
import type { BatchInput, BatchSettings, BatchSource } from '../core/batch/state';
import { FollowUpError } from '../core/errors';
import { chunkWorkflowId, digestOf, followUpWorkflowId, jobOf } from '../core/ids';
import type { FollowUpRequest } from '../core/request';
import { readOwnInput } from './existing-run';
import { Kept } from './kept';

/** Where the items of a batch are: in chunks, or in the input of this run of the batch. */
export interface ItemsSource
  extends Pick<BatchSettings, 'batchId' | 'digest' | 'items'>, Pick<BatchSource, 'chunks'> {
  readonly workflowId: string;
  readonly runId: string;
}

export interface NamedItem {
  readonly workflowId: string;
  /** The caller has named it, so that others may start it too. */
  readonly isOwnName: boolean;
  readonly promptDigest: string;
}

export class ItemsGoneError extends FollowUpError {
  constructor(batchId: string) {
    const message =
      `The server no longer has the items of the batch ${JSON.stringify(batchId)}: deleted, or older than the retention of the ` +
      'namespace. Nothing was started. If you have its file, run the batch again from it, unless it is done.';
    super('BATCH_FORGOTTEN', message);
  }
}

/** The items of a batch by their numbers in the order of the start, read when they are asked for. All throw ItemsGoneError. */
export class ItemsOfBatch {
  /** @param alive is called between questions, of which there may be many */
  constructor(
    protected readonly client: Client,
    protected readonly source: ItemsSource,
    protected readonly alive = () => Promise.resolve(),
  ) {}

  async named(number: number): Promise<NamedItem> {
    return this.pick(await this.names(number), number);
  }

  async request(number: number): Promise<FollowUpRequest> {
    const item = this.pick(await this.part(number), number);
    return { ...item.request, requestId: requestIdOf(this.source.batchId, item) };
  }

  /** The items of the chunk that has an item. */
  part(number: number): Promise<readonly BatchItem[]> {
    const { first, end, workflowId, runId } = this.partOf(number);
    const { batchId, chunks } = this.source;
    const read = async () => {
      const run = await readOwnInput(this.client, workflowId, runId);
      const { items: list } = (run?.input ?? {}) as BatchInput;
      const given = Array.isArray(list) ? (list as FollowUpRequest[]) : [];
      const items = chunks ? (given as readonly unknown[] as BatchItem[]) : inStartOrder(itemsOf(given));
      if (items.length !== end - first) throw new ItemsGoneError(batchId);
      return items;
    };
    return requests.get(this.client, `${workflowId} ${runId}`, 2 * MAX_INPUT_BYTES, read);
  }

  /** The number after the last item of the job that an item is for. */
  readonly endOfLane = async (number: number): Promise<number> => {
    const jobAt = async (item: number) => jobOf((await this.named(item)).workflowId);
    const job = await jobAt(number);
    let next = number + 1;
    while (next < this.source.items && (await jobAt(next)) === job) next += 1;
    return next;
  };

  private pick<T>(part: readonly T[], number: number): T {
    const item = part[number - this.partOf(number).first];
    if (item === undefined) throw new ItemsGoneError(this.source.batchId);
    return item;
  }

  private names(number: number): Promise<readonly NamedItem[]> {
    const { first, end, workflowId, runId } = this.partOf(number);
    const read = async () =>
      (await this.part(number)).map((item) => {
        const { projectId, jobId, prompt } = item.request;
        const workflowId = followUpWorkflowId(projectId, jobId, requestIdOf(this.source.batchId, item));
        return { workflowId, isOwnName: item.key === null, promptDigest: digestOf(prompt) };
      });
    return names.get(this.client, `${workflowId} ${runId}`, ITEM_BYTES * (end - first), read);
  }

  /** The run whose input has an item, and the numbers of its first one and of the one after its last. */
  private partOf(number: number) {
    const { batchId, digest, items, chunks, ...own } = this.source;
    const { firsts = [0] } = chunks ?? {};
    const chunk = firsts.findLastIndex((first) => first <= number);
    const { [chunk]: first = 0, [chunk + 1]: end = items } = firsts;
    const run = chunks ? { workflowId: chunkWorkflowId(batchId, digest ?? '', chunk), runId: '' } : own;
    return { first, end, ...run };
  }
}

/** Of the name of an item, or of its end, about. */
export const ITEM_BYTES = 300;

const names = new Kept<readonly NamedItem[]>();

/** Node keeps a text in two bytes a character if one of them is no Latin-1. */
const requests = new Kept<readonly BatchItem[]>();
