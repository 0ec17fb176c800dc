import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { ItemEnd } from '../../core/batch/batch';
import { cutPages, pagesIn, withPages } from '../../core/batch/pages';
import { type BatchProgress, type BegunPages, type PageResult, QUERY_ENDS } from '../../core/batch/workflows';
import type { FollowUpError } from '../../core/errors';
import { pageWorkflowId } from '../../core/ids';
import { describeWorkflow, stateOf } from '../../temporal/existing-run';
import { isTransient } from '../../temporal/grpc-status';
import { workersPolling } from '../../temporal/sdk-internals';
import { within } from '../call';
import { endsUnread, silence } from '../errors';
import { eachConcurrently } from '../each-concurrently';
import { type BatchDescription, type BatchReport, findBatch, inputOfBatch, reportOf } from './describe-batch';

/** Pages that are asked at once. */
export const ASKED_AT_ONCE = 16;

/** How often a page of a batch that has ended is asked: its worker closes all pages then, or has died a moment ago. */
const PATIENT = 3;

/** A page that was evicted is replayed first. */
const QUERY_TIMEOUT_MS = 10_000;

type PagesOfRun = Pick<BatchProgress, 'batchId' | 'run' | 'openPages' | 'donePages'>;

/**
 * The ends of a batch's items, page by page: what is new since the last question, each end once. A page that has ended is
 * read from its result, without a worker. A question that fails loses nothing: the next one gets its ends.
 */
export class BatchEnds {
  /** How many ends of each page were read. */
  private readonly read = new Map<string, number>();
  private readonly complete = new Set<string>();
  /** Read by this question, or by one that failed, and not handed out yet. */
  private fetched: ItemEnd[] = [];

  /** @param batch its id, or its workflow id */
  constructor(
    private readonly client: Client,
    private readonly batch: string,
  ) {}

  /** What is new of a batch that runs. */
  async since({ batchId, run, openPages, donePages }: PagesOfRun): Promise<ItemEnd[]> {
    await eachConcurrently(openPages, ASKED_AT_ONCE, (page) => this.ask(pageWorkflowId(batchId, run, page)));
    const done = [...pagesIn(donePages)].map((page) => pageWorkflowId(batchId, run, page));
    const news = done.filter((page) => !this.complete.has(page));
    await eachConcurrently(news, ASKED_AT_ONCE, async (page) => {
      await this.ask(page);
      this.complete.add(page);
    });
    return this.handOut();
  }

  /** The other ends, from all pages that have begun. @returns `problem`: why some could not be read; null when all could */
  async rest(): Promise<{ ends: ItemEnd[]; problem: FollowUpError | null }> {
    const batch = await findBatch(this.client, this.batch);
    const { batchId, state, taskQueue } = batch;
    const begun = latestPages(batchId, await begunOf(this.client, batch));
    const pages = begun.filter((page) => !this.complete.has(page));
    const workers = (await workersPolling(this.client, taskQueue)).length;
    const unread = new Set<'lost' | 'silent'>();
    const attempts = state === 'running' ? 1 : PATIENT;
    await eachConcurrently(pages, ASKED_AT_ONCE, async (page) => {
      // Where one page gets no answer, the others are not waited for.
      const left = () => (workers === 0 || unread.has('silent') ? 0 : attempts);
      const problem = await this.readPage(page, state === 'completed', left);
      if (problem !== null) unread.add(problem);
    });
    const ends = this.handOut();
    if (unread.size === 0) return { ends, problem: null };
    const cause = unread.has('silent') ? silence(taskQueue, workers) : null;
    return { ends, problem: endsUnread(batchId, ends, cause) };
  }

  private handOut(): ItemEnd[] {
    const ends = this.fetched;
    this.fetched = [];
    return ends.sort((one, other) => Date.parse(one.settledAt) - Date.parse(other.settledAt));
  }

  /** @returns why its ends can't be read; null when they were */
  private async readPage(
    page: string,
    batchIsDone: boolean,
    attempts: () => number,
  ): Promise<'lost' | 'silent' | null> {
    for (let attempt = 1; ; attempt += 1) {
      const info = await describeWorkflow(this.client, page);
      if (info === null) return 'lost';
      const state = stateOf(info.status.name);
      if (state === 'completed') {
        const { ends, left } = (await this.client.workflow.getHandle(page).result()) as PageResult;
        const since = this.read.get(page) ?? 0;
        this.take(page, since, ends.slice(since));
        // A batch is done when all items have ended. A page that was reset afterwards has closed without their ends.
        return batchIsDone && left.length > 0 ? 'lost' : null;
      }
      // A page that was terminated has no result; only a worker could replay it.
      const problem = state === 'running' ? 'silent' : 'lost';
      if (attempt > attempts()) return problem;
      try {
        await this.ask(page);
        return null;
      } catch {
        // A page completes shortly after its batch. If the server is away, its state can't be read either.
        if (problem === 'lost') return problem;
      }
    }
  }

  private async ask(page: string): Promise<void> {
    const since = this.read.get(page) ?? 0;
    const ends = await within(this.client, QUERY_TIMEOUT_MS, () =>
      this.client.workflow.getHandle(page).query<ItemEnd[], [number]>(QUERY_ENDS, since),
    );
    this.take(page, since, ends);
  }

  private take(page: string, since: number, ends: readonly ItemEnd[]): void {
    this.read.set(page, since + ends.length);
    this.fetched.push(...ends);
  }
}

/** One look at a batch that is being watched. */
export interface BatchLook {
  /** Where it stands; null if neither a worker nor the server answered, and once the batch has ended. */
  readonly report: BatchReport | null;
  /** The items that have settled since the look before. */
  readonly ends: readonly ItemEnd[];
}

const REFRESH_MS = 1_000;

/** Looking takes at most a fifth of the time, however many pages are asked: it costs worker and server. */
const PAUSE_PER_LOOK = 4;

/** `BatchHandle.watch` says what it does. */
export async function* looksAt(
  client: Client,
  batchId: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<BatchLook, void> {
  const { workflowId } = await findBatch(client, batchId);
  const reader = new BatchEnds(client, workflowId);
  for (;;) {
    const askedAt = Date.now();
    try {
      const report = await reportOf(client, workflowId);
      if (report.description.state !== 'running') break;
      // What is not answered is asked again by the next look: nothing is lost by it.
      const ends = report.from === 'worker' ? await reader.since(report.progress).catch(() => []) : [];
      yield { report, ends };
    } catch (error) {
      if (!isTransient(error)) throw error;
      yield { report: null, ends: [] };
    }
    await sleep(Math.max(REFRESH_MS, PAUSE_PER_LOOK * (Date.now() - askedAt)), undefined, { signal });
  }
  const { ends, problem } = await reader.rest();
  yield { report: null, ends };
  if (problem !== null) throw problem;
}

/**
 * The pages that each run of a batch has begun, by its memo. A reset takes back what the memo says, but no page: then each
 * page that exists may have begun.
 */
export async function begunOf(client: Client, batch: BatchDescription): Promise<readonly BegunPages[]> {
  const { batchId, run, wasReset, pages: memo } = batch;
  const begun = memo?.begun ?? [];
  if (!wasReset) return begun;
  const total = memo?.pages ?? [...cutPages((await inputOfBatch(client, batch))?.items ?? [])].length;
  const exist: number[] = [];
  await eachConcurrently(pagesIn([[1, total]]), ASKED_AT_ONCE, async (page) => {
    if ((await describeWorkflow(client, pageWorkflowId(batchId, run, page))) !== null) exist.push(page);
  });
  const own = begun.find((each) => each.run === run)?.pages ?? [];
  return [...begun.filter((each) => each.run !== run), { run, pages: withPages(own, exist) }];
}

/** The workflow of every page that has begun in some run, in the latest run that had begun it. */
export function latestPages(batchId: string, begun: readonly BegunPages[]): string[] {
  const latest = new Map<number, string>();
  for (const { run, pages } of begun)
    for (const page of pagesIn(pages)) latest.set(page, pageWorkflowId(batchId, run, page));
  return [...latest.values()];
}
