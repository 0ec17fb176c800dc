import type { Client } from '@temporalio/client';
import { BATCH_PRIORITY_KEY, type BatchItem, inStartOrder, Keys, startedRequest } from '../core/batch/items';
import type { BatchInput, Chunks } from '../core/batch/state';
import { checkRequest } from '../core/check-request';
import { isRecord } from '../core/checks';
import { FollowUpError } from '../core/errors';
import { chunkWorkflowId, digestOf, fairnessKey, followUpWorkflowId } from '../core/ids';
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
    return this.pick(number, await this.names(number));
  }

  /** @throws ItemsGoneError */
  async request(number: number) {
    return this.pick(number, await this.requests(number));
  }

  /** The number after the last item of the job that an item is for. */
  async endOfLane(number: number): Promise<number> {
    const job = jobOf((await this.named(number)).workflowId);
    let next = number + 1;
    for (;;) {
      const { first, all } = await this.names(next);
      while (next < first + all.length && jobOf(all[next - first]?.workflowId ?? '') === job) next += 1;
      if (next < first + all.length || all.length === 0) return next;
    }
  }

  async *all(): AsyncGenerator<NamedItem, void, undefined> {
    for (let next = 0; ;) {
      const { all } = await this.names(next);
      if (all.length === 0) return;
      yield* all;
      next += all.length;
    }
  }

  private pick<T>(number: number, { first, all }: Part<T>): T {
    const item = all[number - first];
    if (item === undefined) throw new ItemsGoneError(this.source.batchId);
    return item;
  }

  private names(number: number): Promise<Part<NamedItem>> {
    const part = this.partOf(number);
    if (part === null) return Promise.resolve({ first: number, all: [] });
    return Caches.of(this.client).names.get(part.key, async () => {
      const { first, all } = await this.requests(number);
      return { first, all: all.map(({ isOwnName, request }) => nameOf(request, isOwnName)) };
    });
  }

  private requests(number: number): Promise<Part<ItemToStart>> {
    const { batchId, chunks } = this.source;
    const part = this.partOf(number);
    if (part === null) throw new ItemsGoneError(batchId);
    const { first, end, workflowId, runId, key } = part;
    return Caches.of(this.client).requests.get(key, async () => {
      const run = await readOwnInput(this.client, workflowId, runId);
      const input = isRecord(run?.input) ? run.input : {};
      const items = chunks ? (input.items as readonly BatchItem[] | undefined) : itemsOfInput(input);
      if (items?.length !== end - first) throw new ItemsGoneError(batchId);
      const all = items.map((item) => ({
        isOwnName: item.key === null,
        request: startedRequest(batchId, item),
      }));
      return { first, all };
    });
  }

  /** The run whose input has an item, with the numbers of its first item and of the one after its last; null behind the last. */
  private partOf(number: number) {
    const { batchId, digest, items, chunks, ...own } = this.source;
    if (number >= items) return null;
    const part = (workflowId: string, runId: string, first: number, end: number) => {
      return { workflowId, runId, first, end, key: `${workflowId} ${runId}` };
    };
    if (chunks === undefined) return part(own.workflowId, own.runId, 0, items);
    const chunk = chunks.firsts.findLastIndex((first) => first <= number);
    const { [chunk]: first = 0, [chunk + 1]: end = items } = chunks.firsts;
    return part(chunkWorkflowId(batchId, digest ?? '', chunk), '', first, end);
  }
}

interface ItemToStart {
  readonly isOwnName: boolean;
  readonly request: ReturnType<typeof startedRequest>;
}

function nameOf(
  { projectId, jobId, requestId, prompt }: ItemToStart['request'],
  isOwnName: boolean,
): NamedItem {
  return {
    workflowId: followUpWorkflowId(projectId, jobId, requestId),
    isOwnName,
    promptDigest: digestOf(prompt),
  };
}

/** What a batch's input holds, in the order of the start. */
export function itemsOfInput({ items }: BatchInput): BatchItem[] | undefined {
  const keys = new Keys();
  return items && inStartOrder(items.map((request) => keys.itemOf(request)));
}

/** The part of a follow-up's workflow id that names the job. */
export function jobOf(workflowId: string): string {
  return workflowId.slice(0, workflowId.lastIndexOf(':'));
}

interface Part<T> {
  readonly first: number;
  readonly all: readonly T[];
}

/** What is kept: a batch asks for the same items every few seconds. What was used last stays. */
class Kept<T> {
  private readonly parts = new Map<string, { readonly part: Promise<Part<T>>; size: number }>();

  /** @param limit of all sizes together, in characters */
  constructor(
    private readonly limit: number,
    private readonly sizeOf: (item: T) => number,
  ) {}

  get(key: string, read: () => Promise<Part<T>>): Promise<Part<T>> {
    const entry = this.parts.get(key) ?? this.reading(key, read());
    this.parts.delete(key);
    this.parts.set(key, entry);
    return entry.part;
  }

  private reading(key: string, part: Promise<Part<T>>) {
    const entry = { part, size: 0 };
    part.then(
      ({ all }) => {
        entry.size = all.reduce((sum, item) => sum + this.sizeOf(item), 0);
        let total = 0;
        for (const [each, { size }] of [...this.parts].reverse()) {
          total += size;
          if (total > this.limit && each !== key) this.parts.delete(each);
        }
      },
      () => this.parts.delete(key),
    );
    return entry;
  }
}

/**
 * What a worker's client keeps: a look needs the names of what runs, a start its prompt. 200,000 names have some 60 MiB, as
 * much as the prompts.
 */
class Caches {
  private static readonly ofClients = new WeakMap<Client, Caches>();

  readonly names = new Kept<NamedItem>(200_000, () => 1);
  readonly requests = new Kept<ItemToStart>(32 * 1_024 * 1_024, ({ request }) => request.prompt.length + 300);

  static of(client: Client): Caches {
    const caches = Caches.ofClients.get(client) ?? new Caches();
    Caches.ofClients.set(client, caches);
    return caches;
  }
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
