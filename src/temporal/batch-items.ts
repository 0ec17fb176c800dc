import type { Client } from '@temporalio/client';
import { BATCH_PRIORITY_KEY, type BatchItem, inStartOrder, Keys, requestIdOf } from '../core/batch/items';
import type { BatchInput, Chunks } from '../core/batch/state';
import { checkRequest } from '../core/check-request';
import { isRecord } from '../core/checks';
import { FollowUpError } from '../core/errors';
import { chunkWorkflowId, digestOf, fairnessKey, followUpWorkflowId } from '../core/ids';
import { FOLLOW_UP_WORKFLOW } from '../core/names';
import { readOwnInput } from './existing-run';
import type { ListedEnd } from './lists';
import { retryOptions, startOptions } from './start-follow-up';

/** Where the items of a batch are. */
export interface ItemsSource {
  readonly batchId: string;
  /** Of the run of the batch that has them in its input, where there are no chunks. */
  readonly workflowId: string;
  readonly runId: string;
  readonly digest: string | null;
  readonly items: number;
  readonly chunks?: Chunks | undefined;
}

/** The name of an item. */
export interface NamedItem {
  readonly workflowId: string;
  /** The caller has named it, so that others may start it too. */
  readonly isOwnName: boolean;
  readonly promptDigest: string;
}

/** An item, and its request as it is started. */
type ItemToStart = BatchItem & { readonly request: { readonly requestId: string } };

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
  async named(number: number): Promise<NamedItem> {
    const part = this.partOf(number);
    return this.pick(await this.names(part), number - part.first);
  }

  /** @throws ItemsGoneError */
  async request(number: number): Promise<ItemToStart['request']> {
    const part = this.partOf(number);
    return this.pick(await this.requests(part), number - part.first).request;
  }

  /** The number after the last item of the job that an item is for. */
  async endOfLane(number: number): Promise<number> {
    const jobAt = async (item: number) => jobOf((await this.named(item)).workflowId);
    const job = await jobAt(number);
    let next = number + 1;
    while (next < this.source.items && (await jobAt(next)) === job) next += 1;
    return next;
  }

  async *all(): AsyncGenerator<NamedItem, void, undefined> {
    for (let next = 0; next < this.source.items;) {
      const part = this.partOf(next);
      yield* await this.names(part);
      next = part.end;
    }
  }

  private pick<T>(items: readonly T[], index: number): T {
    const item = items[index];
    if (item === undefined) throw new ItemsGoneError(this.source.batchId);
    return item;
  }

  private names(part: Part): Promise<readonly NamedItem[]> {
    return cachesOf(this.client).names.get(part.key, async () =>
      (await this.requests(part)).map(({ key, request }) => ({
        workflowId: followUpWorkflowId(request.projectId, request.jobId, request.requestId),
        isOwnName: key === null,
        promptDigest: digestOf(request.prompt),
      })),
    );
  }

  private requests({ first, end, workflowId, runId, key }: Part): Promise<readonly ItemToStart[]> {
    const { batchId, chunks } = this.source;
    return cachesOf(this.client).requests.get(key, async () => {
      const run = await readOwnInput(this.client, workflowId, runId);
      const input = isRecord(run?.input) ? run.input : {};
      const items = chunks ? (input.items as readonly BatchItem[] | undefined) : itemsOfInput(input);
      if (items?.length !== end - first) throw new ItemsGoneError(batchId);
      return items.map(({ key, request }) => {
        const requestId = requestIdOf(batchId, { key, request });
        return { key, request: { ...request, requestId } };
      });
    });
  }

  /** The run whose input has an item. */
  private partOf(number: number): Part {
    const { batchId, digest, items, chunks, ...own } = this.source;
    const { firsts = [0] } = chunks ?? {};
    const chunk = firsts.findLastIndex((first) => first <= number);
    const { [chunk]: first = 0, [chunk + 1]: end = items } = firsts;
    const { workflowId, runId } = chunks
      ? { workflowId: chunkWorkflowId(batchId, digest ?? '', chunk), runId: '' }
      : own;
    return { first, end, workflowId, runId, key: `${workflowId} ${runId}` };
  }
}

/** A run that holds items, with the numbers of its first item and of the one after its last. */
interface Part {
  readonly first: number;
  readonly end: number;
  readonly workflowId: string;
  readonly runId: string;
  readonly key: string;
}

/** What a batch's input holds, in the order of the start. */
function itemsOfInput({ items }: BatchInput): BatchItem[] | undefined {
  const keys = new Keys();
  return items && inStartOrder(items.map((request) => keys.itemOf(request)));
}

/** The part of a follow-up's workflow id that names the job. */
export function jobOf(workflowId: string): string {
  return workflowId.slice(0, workflowId.lastIndexOf(':'));
}

/** Keeps what was read. What was used last stays. */
class Kept<T> {
  private readonly entries = new Map<string, { readonly value: Promise<T>; size: number }>();

  /** @param limit of all sizes together */
  constructor(
    private readonly limit: number,
    private readonly sizeOf: (value: T) => number,
  ) {}

  get(key: string, read: () => Promise<T>): Promise<T> {
    const entry = this.entries.get(key) ?? this.reading(key, read());
    this.entries.delete(key);
    this.entries.set(key, entry);
    return entry.value;
  }

  private reading(key: string, value: Promise<T>) {
    const entry = { value, size: 0 };
    const kept = (read: T): void => {
      entry.size = this.sizeOf(read);
      let total = 0;
      for (const [each, { size }] of [...this.entries].reverse()) {
        total += size;
        if (total > this.limit && each !== key) this.entries.delete(each);
      }
    };
    value.then(kept, () => this.entries.delete(key));
    return entry;
  }
}

/** What a client keeps: a batch asks for the same every few seconds. Each of the three may have some 60 MiB. */
function newCaches() {
  return {
    /** A look needs the names of what runs, … */
    names: new Kept<readonly NamedItem[]>(200_000, (items) => items.length),
    /** … a start its request, … */
    requests: new Kept<readonly ItemToStart[]>(32 * 1_024 * 1_024, (items) =>
      items.reduce((sum, { request }) => sum + request.prompt.length + 300, 0),
    ),
    /** … and a retry how the items had ended. */
    ends: new Kept<ReadonlyMap<string, ListedEnd>>(200_000, (ends) => ends.size),
  };
}

const caches = new WeakMap<Client, ReturnType<typeof newCaches>>();

export function cachesOf(client: Client) {
  const own = caches.get(client) ?? newCaches();
  caches.set(client, own);
  return own;
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
  request: ItemToStart['request'],
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
