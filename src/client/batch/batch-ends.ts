import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { ItemEnd } from '../../contract/batch';
import { type BatchProgress, type PageResult, QUERY_ENDS } from '../../contract/batch-workflows';
import { pageWorkflowId } from '../../contract/workflow-id';
import { stateOf } from '../description';
import { eachOf } from '../each-of';

/** Pages that are asked at once. */
const AT_ONCE = 16;

/** A page answers within milliseconds, by a worker that is there. */
const QUERY_TIMEOUT_MS = 10_000;

/**
 * The ends of a batch's items, page by page: what is new since the last question, each end once. A page that is done is
 * read once, from its result, for which no worker is needed. A question that fails loses nothing: the next one tells.
 */
export class BatchEnds {
  /** How many ends of each page were heard of. */
  private readonly read = new Map<number, number>();
  private readonly complete = new Set<number>();
  /** Heard of by the question at hand, or by one that failed, and not told yet. */
  private heard: ItemEnd[] = [];
  /** Told by the next question: another page may still tell of an earlier end. */
  private held: ItemEnd[] = [];

  constructor(
    private readonly client: Client,
    private readonly batchId: string,
    private readonly run: string,
    private readonly pages: number,
  ) {}

  /**
   * What is new of a batch that runs, in the order of settling, also over several questions. An end that came about
   * during a question is told by the next one.
   *
   * @param askedAt milliseconds since the epoch, before `progress` was asked for; infinite where nothing is asked after it
   */
  async since(
    progress: Pick<BatchProgress, 'openPages' | 'pages'>,
    askedAt = Date.now(),
  ): Promise<ItemEnd[]> {
    const open = new Set(progress.openPages);
    await eachOf(open, AT_ONCE, (page) => this.askPage(page));
    // Pages may have ended, or begun and ended, since the last question.
    if (progress.pages.done > this.complete.size) {
      const others = this.unread().filter((page) => !open.has(page));
      await eachOf(others, AT_ONCE, (page) => this.readResult(page));
    }
    const isEarlier = ({ settledAt }: ItemEnd): boolean => Date.parse(settledAt) < askedAt;
    const told = [...this.held, ...this.heard.filter(isEarlier)];
    this.held = this.heard.filter((end) => !isEarlier(end));
    this.heard = [];
    return inOrder(told);
  }

  /** The rest, of a batch that has ended, in the order of settling. */
  async rest(): Promise<ItemEnd[]> {
    await eachOf(this.unread(), AT_ONCE, (page) => this.readLast(page));
    const told = [...this.held, ...this.heard];
    this.held = [];
    this.heard = [];
    return inOrder(told);
  }

  private unread(): number[] {
    const all = Array.from({ length: this.pages }, (_, index) => index + 1);
    return all.filter((page) => !this.complete.has(page));
  }

  private async askPage(page: number): Promise<void> {
    const since = this.read.get(page) ?? 0;
    const ends = await this.client.withDeadline(Date.now() + QUERY_TIMEOUT_MS, () =>
      this.handle(page).query<ItemEnd[], [number]>(QUERY_ENDS, since),
    );
    this.take(page, since, ends);
  }

  private async readResult(page: number): Promise<void> {
    const state = await this.stateOf(page);
    // It was never handed over, or its history is gone; or it waits for its turn.
    if (state === null || state === 'running') return;
    if (state === 'completed') {
      const { ends } = (await this.handle(page).result()) as PageResult;
      const since = this.read.get(page) ?? 0;
      this.take(page, since, ends.slice(since));
    } else {
      // One that was terminated has no result; a worker can still tell what it had heard.
      await this.askPage(page).catch(() => undefined);
    }
    this.complete.add(page);
  }

  /** A page may close a moment after its batch, or long after it, if the batch was terminated. */
  private async readLast(page: number): Promise<void> {
    if ((await this.stateOf(page)) === 'running') await this.askPage(page).catch(() => undefined);
    else await this.readResult(page);
  }

  private take(page: number, since: number, ends: readonly ItemEnd[]): void {
    this.read.set(page, since + ends.length);
    this.heard.push(...ends);
  }

  private async stateOf(page: number) {
    try {
      return stateOf((await this.handle(page).describe()).status.name);
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return null;
      throw error;
    }
  }

  private handle(page: number) {
    return this.client.workflow.getHandle(pageWorkflowId(this.batchId, this.run, page));
  }
}

function inOrder(ends: ItemEnd[]): ItemEnd[] {
  return ends.sort((one, other) =>
    one.settledAt < other.settledAt ? -1 : one.settledAt > other.settledAt ? 1 : 0,
  );
}
