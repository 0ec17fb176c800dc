import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { ItemEnd } from '../../core/batch';
import { pagesIn } from '../../core/batch-pages';
import { type BatchProgress, type BegunPages, type PageResult, QUERY_ENDS } from '../../core/batch-workflows';
import { pageWorkflowId } from '../../core/ids';
import { stateOf } from '../../temporal/existing-run';
import { mapConcurrently } from '../map-concurrently';
import { describeBatch } from './describe-batch';
import { batchForgotten } from '../errors';

/** Pages that are asked at once. */
const AT_ONCE = 16;

/** How often a page that runs is asked before its silence is an error. */
const MAX_ATTEMPTS = 5;

/** A page answers within milliseconds, by a worker that is there; one that was evicted is replayed first. */
const QUERY_TIMEOUT_MS = 10_000;

/**
 * The ends of a batch's items, page by page: what is new since the last question, each end once. The pages of a batch that
 * has ended are read from their results, for which no worker is needed. A question that fails loses nothing: the next one
 * tells.
 */
export class BatchEnds {
  /** The pages that {@link rest} could not read: nobody can tell what became of their items. */
  readonly unreadable = new Set<number>();
  /** How many ends of each page were heard of. */
  private readonly read = new Map<string, number>();
  /** Pages of which everything was heard. */
  private readonly complete = new Set<string>();
  /** Heard of by the question at hand, or by one that failed, and not told yet. */
  private fetched: ItemEnd[] = [];

  /** @param workflowId the batch's */
  constructor(
    private readonly client: Client,
    private readonly workflowId: string,
  ) {}

  /** What is new of a batch that runs, as its pages tell it. */
  async since({
    batchId,
    run,
    openPages,
    donePages,
  }: Pick<BatchProgress, 'batchId' | 'run' | 'openPages' | 'donePages'>): Promise<ItemEnd[]> {
    await mapConcurrently(openPages, AT_ONCE, (page) => this.ask(pageWorkflowId(batchId, run, page)));
    const done = [...pagesIn(donePages)].map((page) => pageWorkflowId(batchId, run, page));
    const news = done.filter((page) => !this.complete.has(page));
    await mapConcurrently(news, AT_ONCE, async (page) => {
      await this.ask(page);
      this.complete.add(page);
    });
    return this.told();
  }

  /** The rest of what there is at present, sorted by the server's times. */
  async rest(): Promise<ItemEnd[]> {
    const { isDone, pages } = await this.begun();
    await mapConcurrently(pages, AT_ONCE, async ({ page, workflowId }) => {
      if (!(await this.readPage(workflowId, isDone))) this.unreadable.add(page);
    });
    return this.told();
  }

  /** By the server's times. */
  private told(): ItemEnd[] {
    const ends = this.fetched;
    this.fetched = [];
    return ends.sort((one, other) => Date.parse(one.settledAt) - Date.parse(other.settledAt));
  }

  /** The pages that have begun, in the run that knows them last, and that may have something to tell. */
  private async begun() {
    const description = await describeBatch(this.client, this.workflowId);
    const { batchId = '', pages } = description ?? {};
    const begun = [...begunPages(pages?.begun ?? [])]
      .map(([page, run]) => ({ page, workflowId: pageWorkflowId(batchId, run, page) }))
      .filter(({ workflowId }) => !this.complete.has(workflowId));
    return { isDone: description?.state === 'completed', pages: begun };
  }

  /** @returns false where nobody can tell the page's ends */
  private async readPage(page: string, batchIsDone: boolean): Promise<boolean> {
    for (let attempt = 1; ; attempt += 1) {
      const state = await this.stateOf(page);
      if (state === null) return false;
      if (state === 'completed') {
        const { ends, left } = (await this.handle(page).result()) as PageResult;
        const since = this.read.get(page) ?? 0;
        this.take(page, since, ends.slice(since));
        this.complete.add(page);
        // A batch is done when all items have ended. A page that was reset afterwards has closed without their ends.
        return !batchIsDone || left.length === 0;
      }
      try {
        await this.ask(page);
        return true;
      } catch (error) {
        // One that was terminated has no result; only a worker could still tell what it knew.
        if (state !== 'running') return false;
        // A page completes shortly after its batch. Its worker may be busy, or may have died a moment ago.
        if (attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  private async ask(page: string): Promise<void> {
    const since = this.read.get(page) ?? 0;
    const ends = await this.client.withDeadline(Date.now() + QUERY_TIMEOUT_MS, () =>
      this.handle(page).query<ItemEnd[], [number]>(QUERY_ENDS, since),
    );
    this.take(page, since, ends);
  }

  private take(page: string, since: number, ends: readonly ItemEnd[]): void {
    this.read.set(page, since + ends.length);
    this.fetched.push(...ends);
  }

  private async stateOf(page: string) {
    try {
      return stateOf((await this.handle(page).describe()).status.name);
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return null;
      throw error;
    }
  }

  private handle(page: string) {
    return this.client.workflow.getHandle(page);
  }
}

/** Every page that has begun in some run, with the latest one that had begun it. */
function begunPages(begun: readonly BegunPages[]): Map<number, string> {
  const runs = new Map<number, string>();
  for (const { run, pages } of begun) for (const page of pagesIn(pages)) runs.set(page, run);
  return runs;
}

/**
 * Makes sure that the pages are there that know what a batch has sent.
 *
 * @throws FollowUpError
 */
export async function refuseForgotten(
  client: Client,
  batchId: string,
  begun: readonly BegunPages[],
): Promise<void> {
  const gone: number[] = [];
  await mapConcurrently(begunPages(begun), AT_ONCE, async ([page, run]) => {
    if (!(await isThere(client, pageWorkflowId(batchId, run, page)))) gone.push(page);
  });
  if (gone.length > 0)
    throw batchForgotten(
      batchId,
      gone.sort((one, other) => one - other),
    );
}

export async function isThere(client: Client, workflowId: string): Promise<boolean> {
  try {
    await client.workflow.getHandle(workflowId).describe();
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
