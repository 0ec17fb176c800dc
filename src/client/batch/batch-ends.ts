import type { Client } from '@temporalio/client';
import type { ItemEnd } from '../../contract/batch';
import { type BatchProgress, type PageResult, QUERY_ENDS } from '../../contract/batch-workflows';
import { pageWorkflowId } from '../../contract/workflow-id';
import { stateOf } from '../description';

/** Pages that are asked at once. */
const AT_ONCE = 16;

/**
 * The ends of a batch's items, page by page: what is new since the last question. A page that is done is read once, from
 * its result, for which no worker is needed.
 */
export class BatchEnds {
  private readonly read = new Map<number, number>();
  private readonly complete = new Set<number>();

  constructor(
    private readonly client: Client,
    private readonly batchId: string,
    private readonly run: string,
    private readonly pages: number,
  ) {}

  /** What is new of a batch that runs, in the order of settling. */
  async since(progress: Pick<BatchProgress, 'openPages' | 'pages'>): Promise<ItemEnd[]> {
    const open = new Set(progress.openPages);
    const fresh = await this.each([...open], (page) => this.askPage(page));
    // Pages may have ended, or begun and ended, since the last question.
    const others = this.unread().filter((page) => !open.has(page));
    if (progress.pages.done > this.complete.size) {
      fresh.push(...(await this.each(others, (page) => this.readResult(page))));
    }
    return inOrder(fresh);
  }

  /** The rest, of a batch that has ended, in the order of settling. */
  async rest(): Promise<ItemEnd[]> {
    return inOrder(await this.each(this.unread(), (page) => this.readResult(page)));
  }

  private unread(): number[] {
    const all = Array.from({ length: this.pages }, (_, index) => index + 1);
    return all.filter((page) => !this.complete.has(page));
  }

  private async askPage(page: number): Promise<ItemEnd[]> {
    const since = this.read.get(page) ?? 0;
    const ends = await this.handle(page).query<ItemEnd[], [number]>(QUERY_ENDS, since);
    this.read.set(page, since + ends.length);
    return ends;
  }

  private async readResult(page: number): Promise<ItemEnd[]> {
    const handle = this.handle(page);
    const state = await handle.describe().then(
      ({ status }) => stateOf(status.name),
      () => null,
    );
    // It was never handed over, or its history is gone.
    if (state === null) return [];
    if (state === 'running') return [];
    this.complete.add(page);
    // One that was terminated has no result; a worker can still tell what it had heard.
    if (state !== 'completed') return this.askPage(page).catch(() => []);
    const { ends } = (await handle.result()) as PageResult;
    const since = this.read.get(page) ?? 0;
    this.read.set(page, ends.length);
    return ends.slice(since);
  }

  private handle(page: number) {
    return this.client.workflow.getHandle(pageWorkflowId(this.batchId, this.run, page));
  }

  private async each(
    pages: readonly number[],
    read: (page: number) => Promise<ItemEnd[]>,
  ): Promise<ItemEnd[]> {
    const found: ItemEnd[] = [];
    for (let from = 0; from < pages.length; from += AT_ONCE) {
      const some = await Promise.all(pages.slice(from, from + AT_ONCE).map(read));
      found.push(...some.flat());
    }
    return found;
  }
}

function inOrder(ends: ItemEnd[]): ItemEnd[] {
  return ends.sort((one, other) =>
    one.settledAt < other.settledAt ? -1 : one.settledAt > other.settledAt ? 1 : 0,
  );
}
