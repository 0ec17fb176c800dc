import type { Client } from '@temporalio/client';
import { BATCH_PRIORITY_KEY, type BatchItem, inStartOrder, Keys, startedRequest } from '../core/batch/items';
import type { BatchInput, Chunks } from '../core/batch/state';
import { checkRequest } from '../core/check-request';
import { isRecord } from '../core/checks';
import { FollowUpError } from '../core/errors';
import { chunkWorkflowId, fairnessKey, followUpWorkflowId } from '../core/ids';
import { FOLLOW_UP_WORKFLOW } from '../core/names';
import type { FollowUpRequest } from '../core/request';
import { readOwnInput } from './existing-run';
import { retryOptions, startOptions } from './start-follow-up';

/** Where the items of a batch are. */
export interface ItemsSource {
  readonly batchId: string;
  /** Of the run of the batch that has them in its input, where there are no chunks. */
  readonly workflowId: string;
  readonly runId: string;
  readonly digest: string | null;
  readonly chunks?: Chunks | undefined;
}

/** An item with its name. */
export interface NamedItem {
  readonly workflowId: string;
  /** Tells the job from every other one: the beginning of the workflow id. */
  readonly job: string;
  /** The caller has named it, so that others may start it too. */
  readonly isOwnName: boolean;
  readonly request: ReturnType<typeof startedRequest>;
}

/** Thrown when the server no longer has the items of a batch. */
export class ItemsGoneError extends FollowUpError {
  constructor(batchId: string) {
    const message =
      `The server no longer has the items of the batch ${JSON.stringify(batchId)}: deleted, or older than the retention of the ` +
      'namespace. Nothing was started. If you have its file, run the batch again from it.';
    super('BATCH_FORGOTTEN', message);
  }
}

/** The items of a batch by their numbers in the order of the start. They are read when they are asked for. */
export class ItemsOfBatch {
  constructor(
    private readonly client: Client,
    private readonly source: ItemsSource,
  ) {}

  /** @throws ItemsGoneError */
  async at(number: number): Promise<NamedItem> {
    const { first, items } = await this.partWith(number);
    const item = items[number - first];
    if (item === undefined) throw new ItemsGoneError(this.source.batchId);
    return item;
  }

  /** The number after the last item of the job that an item is for. */
  async endOfLane(number: number): Promise<number> {
    const { job } = await this.at(number);
    for (let next = number; ;) {
      const { first, items } = await this.partWith(next).catch((error: unknown) => {
        if (error instanceof NoSuchItem) return { first: next, items: [] };
        throw error;
      });
      const other = items.findIndex((item, index) => first + index >= next && item.job !== job);
      if (other >= 0) return first + other;
      if (items.length === 0) return next;
      next = first + items.length;
    }
  }

  async *all(): AsyncGenerator<NamedItem, void, undefined> {
    for (let next = 0; ;) {
      const { items } = await this.partWith(next).catch((error: unknown) => {
        if (error instanceof NoSuchItem) return { items: [] };
        throw error;
      });
      if (items.length === 0) return;
      yield* items;
      next += items.length;
    }
  }

  private async partWith(number: number): Promise<Part> {
    const { chunks, batchId, workflowId, runId, digest } = this.source;
    const { namespace } = this.client.options;
    if (chunks === undefined) {
      const part = await cached(`${namespace} ${workflowId} ${runId}`, async () => {
        const input = (await readOwnInput(this.client, workflowId, runId))?.input;
        return { first: 0, items: namedItems(batchId, isRecord(input) ? itemsOfInput(input) : undefined) };
      });
      if (number >= part.items.length) throw new NoSuchItem();
      return part;
    }
    if (number >= chunks.items) throw new NoSuchItem();
    const chunk = chunks.firsts.findLastIndex((first) => first <= number);
    const id = chunkWorkflowId(batchId, digest ?? '', chunk);
    return cached(`${namespace} ${id}`, async () => {
      const input = (await readOwnInput(this.client, id, ''))?.input;
      const items = isRecord(input) ? (input.items as readonly BatchItem[]) : undefined;
      const { [chunk]: first = 0, [chunk + 1]: next = chunks.items } = chunks.firsts;
      if (items?.length !== next - first) throw new ItemsGoneError(batchId);
      return { first: chunks.firsts[chunk] ?? 0, items: namedItems(batchId, items) };
    });
  }
}

class NoSuchItem extends Error {}

/** What a batch's input holds, in the order of the start. */
export function itemsOfInput({ items }: BatchInput): BatchItem[] | undefined {
  const keys = new Keys();
  return items && inStartOrder(items.map((request) => keys.itemOf(request)));
}

function namedItems(batchId: string, items: readonly BatchItem[] | undefined): NamedItem[] {
  if (items === undefined) throw new ItemsGoneError(batchId);
  return items.map((item) => {
    const request = startedRequest(batchId, item);
    const workflowId = followUpWorkflowId(request.projectId, request.jobId, request.requestId);
    return { workflowId, job: jobOf(workflowId), isOwnName: item.key === null, request };
  });
}

/** The part of a follow-up's workflow id that names the job. */
export function jobOf(workflowId: string): string {
  return workflowId.slice(0, workflowId.lastIndexOf(':'));
}

interface Part {
  readonly first: number;
  readonly items: readonly NamedItem[];
}

/** Characters of the prompts that a process keeps, beside the names: a batch asks for the same items every few seconds. */
const MAX_CACHED_CHARACTERS = 32 * 1_024 * 1_024;

/** An item's names, in characters of a prompt. */
const NAMES = 500;

const cache = new Map<string, { readonly part: Promise<Part>; size: number }>();

/** Those that were used last stay. */
function cached(key: string, read: () => Promise<Part>): Promise<Part> {
  const known = cache.get(key);
  cache.delete(key);
  if (known !== undefined) {
    cache.set(key, known);
    return known.part;
  }
  const entry = { part: read(), size: 0 };
  cache.set(key, entry);
  entry.part.then(
    ({ items }) => {
      entry.size = items.reduce((sum, { request }) => sum + request.prompt.length + NAMES, 0);
      let total = 0;
      for (const [each, { size }] of [...cache].reverse()) {
        total += size;
        if (total > MAX_CACHED_CHARACTERS && each !== key) cache.delete(each);
      }
    },
    () => cache.delete(key),
  );
  return entry.part;
}

/**
 * Starts an item of a batch.
 *
 * @param retried the run that ended, for one more run of the same follow-up; null to start only one that does not exist
 * @throws WorkflowExecutionAlreadyStartedError
 */
export async function startItem(
  client: Client,
  taskQueue: string,
  request: FollowUpRequest & { readonly requestId: string },
  batchId: string,
  retried: string | null,
): Promise<void> {
  const checked = checkRequest(request);
  if (!checked.ok) throw new TypeError('an item is started that was not checked');
  await client.workflow.start(FOLLOW_UP_WORKFLOW, {
    ...startOptions(checked.plan, batchId),
    ...(retried === null ? {} : retryOptions(retried)),
    taskQueue,
    args: [request],
    // Its activities inherit the priority: single follow-ups go first.
    priority: { priorityKey: BATCH_PRIORITY_KEY, fairnessKey: fairnessKey(request.projectId) },
  });
}
