import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  allHandlersFinished,
  CancellationScope,
  CancelledFailure,
  condition,
  defineQuery,
  defineSignal,
  getExternalWorkflowHandle,
  isCancellation,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { type EndOfItem, isFailure, type ItemEnd } from '../../core/batch/batch';
import {
  type Allotment,
  isAllotment,
  noPlaces,
  isPageTrouble,
  type PageInput,
  type PageReport,
  type PageResult,
  QUERY_ENDS,
  SIGNAL_ALLOT,
  SIGNAL_REPORT,
} from '../../core/batch/workflows';
import { runOf } from '../../core/ids';
import { ownRunId, questionProxy, wasReset } from '../activity-proxies';
import { checkPage } from './check-batch';
import { failuresOf, firstFailures } from './counts';
import { answerOf, ignoreCancellation, type PageItem, PageItems } from './items';
import { awaitItem, runItem } from './run-item';
import { batchFailure, reserved } from './state';

export const allotSignal = defineSignal<[Allotment]>(SIGNAL_ALLOT);
export const reportSignal = defineSignal<[PageReport]>(SIGNAL_REPORT);
const endsQuery = defineQuery<ItemEnd[], [since: number]>(QUERY_ENDS);

/**
 * Runs some items of a batch as follow-ups of their own, within the places that the batch grants; one after the other for a
 * job. It never continues as new: a child's end is not delivered to a parent that has (measured). It stays open until its
 * batch has ended: retention never removes an open workflow, with what it knows of its items.
 *
 * @throws ApplicationFailure `InvalidBatch`
 */
export async function followUpBatchPage(input: PageInput): Promise<PageResult> {
  checkPage(input);
  const page = new Page(input);
  setHandler(allotSignal, (value: unknown) => {
    if (isAllotment(value)) page.allotment = value;
  });
  setHandler(endsQuery, (since) => page.items.ends.slice(since));
  try {
    return await page.run();
  } finally {
    await CancellationScope.nonCancellable(() => condition(allHandlersFinished));
  }
}

class Page {
  readonly items: PageItems;
  allotment: Allotment = noPlaces('run');

  private readonly followUps = new CancellationScope({
    cancellable: true,
    parent: new CancellationScope({ cancellable: false }),
  });
  /** Follow-ups that the server was asked to start, and has not started yet. */
  private starts = 0;
  /** The last report, and the allotment at that time. */
  private last: { readonly report: PageReport; readonly allotment: Allotment } | null = null;
  private batchIsGone = false;
  private done = false;
  /** The run of this workflow that knows which follow-ups exist: the first one of a batch's first run needs not ask. */
  private askedBy: string | null;

  constructor(private readonly input: PageInput) {
    this.items = new PageItems(input);
    this.askedBy = (input.earlier ?? null) === null ? workflowInfo().firstExecutionRunId : null;
  }

  async run(): Promise<PageResult> {
    const looking = new CancellationScope();
    let reporting: Promise<void> | null = null;
    try {
      looking.run(() => this.watchForTrouble()).catch(ignoreCancellation);
      await Promise.race([this.isInformed(), condition(() => this.isClosed())]);
      reporting = this.reportToBatch();
      await this.runItems();
      this.done = true;
      await condition(() => this.isClosed());
    } catch (error) {
      if (!isCancellation(error)) throw error;
      // Cancelling a page leaves its follow-ups running, as the end of the batch does.
      this.done = true;
    }
    looking.cancel();
    return CancellationScope.nonCancellable(async () => {
      await condition(() => this.starts === 0);
      await (reporting ?? this.reportToBatch());
      if (this.askedBy !== null) return this.items.result(await wasReset());
      // Not a result: what the page of the earlier run knows still holds.
      const message =
        'The page was ended before it knew which of its follow-ups exist. It has started nothing.';
      throw batchFailure('BatchIncomplete', message);
    });
  }

  private async runItems(): Promise<void> {
    const { items } = this;
    for (;;) {
      if (this.allotment.mode === 'cancel') this.followUps.cancel();
      while (this.due().length > 0) {
        // Both in one workflow task: a reset comes either before them or after them.
        if (await this.isInformed()) for (const item of this.due()) this.open(item, runItem);
      }
      if (this.isOver()) return;
      const { allotment, batchIsGone } = this;
      const { open } = items;
      // Only what has changed since: a condition that holds already would turn this into a loop that never yields.
      await condition(
        () => items.open !== open || this.allotment !== allotment || this.batchIsGone !== batchIsGone,
      );
    }
  }

  /** Whether this run knows which of its items exist. Otherwise it asks, and then looks again at what is due. */
  private async isInformed(): Promise<boolean> {
    const run = await ownRunId();
    if (run === this.askedBy) return true;
    for (const item of await this.items.find(run !== workflowInfo().firstExecutionRunId))
      this.open(item, awaitItem);
    this.askedBy = run;
    return false;
  }

  /** The items that may be started now. */
  private due(): PageItem[] {
    if (this.done || this.allotment.mode !== 'run' || this.batchIsGone) return [];
    // The place of a failed item stays reserved until the batch has said that the failure is within the tolerance.
    const free = this.allotment.places - this.unconfirmed() - this.items.open;
    return this.items.next().slice(0, Math.max(0, free));
  }

  /** Failures of which the batch has not yet said that they are within the tolerance. */
  private unconfirmed(): number {
    const { tolerated } = this.allotment;
    return tolerated === null ? 0 : Math.max(0, failuresOf(this.items.counts) - tolerated);
  }

  private open(item: PageItem, work: typeof runItem): void {
    const { batchId, again = null } = this.input;
    const starting = <T>(start: () => Promise<T>): Promise<T> => this.starting(item, start);
    item.state = 'open';
    // Cancelled follow-ups are still waited for.
    const end = this.followUps.run(() => work(item, { batchId, again, starting }));
    const settle = (found: EndOfItem) => {
      this.items.settle(item, found);
    };
    void end.then(settle, (error: unknown) => {
      item.state = 'to-come';
      ignoreCancellation(error);
    });
  }

  /**
   * The server does not start a child whose parent has closed meanwhile, although it is to be abandoned (measured), so a page
   * waits for its starts before it closes, and makes none once it is about to.
   */
  private async starting<T>(item: PageItem, start: () => Promise<T>): Promise<T> {
    if (this.done) throw new CancelledFailure('The page starts nothing more.');
    const { mayExist } = item;
    item.mayExist = true;
    this.starts += 1;
    try {
      return await start();
    } catch (error) {
      // Cancelled before the server was asked; later it waits for the child.
      if (isCancellation(error)) item.mayExist = mayExist;
      if (error instanceof WorkflowExecutionAlreadyStartedError) item.isForeign = !mayExist;
      throw error;
    } finally {
      this.starts -= 1;
    }
  }

  private isOver(): boolean {
    const { mode } = this.allotment;
    if (mode === 'leave') return true;
    if (this.items.open > 0) return false;
    return this.batchIsGone || mode !== 'run' || this.items.next().length === 0;
  }

  private isClosed(): boolean {
    return this.allotment.mode === 'leave' || this.batchIsGone;
  }

  private async watchForTrouble(): Promise<void> {
    const { batchWorkflowId, run } = this.input;
    const { pageTrouble } = questionProxy('are the batch and the open follow-ups there?');
    for (;;) {
      const batch = this.batchIsGone ? null : batchWorkflowId;
      const question = { batchWorkflowId: batch, run, known: this.items.lost };
      const trouble = await answerOf(pageTrouble(question));
      if (!isPageTrouble(trouble)) continue;
      this.batchIsGone ||= trouble.batchIsGone;
      this.items.lose(trouble.lost);
    }
  }

  private async reportToBatch(): Promise<void> {
    const batch = getExternalWorkflowHandle(this.input.batchWorkflowId);
    await CancellationScope.nonCancellable(async () => {
      for (;;) {
        await condition(() => this.mustReport() || this.batchIsGone);
        if (this.batchIsGone) return;
        const report = this.report();
        this.last = { report, allotment: this.allotment };
        try {
          await batch.signal(reportSignal, report);
        } catch {
          // It was terminated, or ended before this page was handed over.
          this.batchIsGone = true;
        }
        if (report.done) return;
      }
    });
  }

  private mustReport(): boolean {
    const { last } = this;
    if (last === null || this.done) return true;
    // The batch does not know of all failures: those that an earlier run left, or a report that it lost in a reset.
    if (this.unconfirmed() > 0 && last.allotment !== this.allotment) return true;
    return isNews(this.report(), last.report);
  }

  private report(): PageReport {
    const { run, page } = this.input;
    const { open, counts, ends } = this.items;
    return {
      run,
      pageRun: runOf(workflowInfo().firstExecutionRunId),
      page: page.number,
      after: page.after,
      wants: open + this.items.next().length,
      places: this.allotment.places,
      open,
      counts,
      failures: firstFailures([ends.filter(isFailure)]),
      done: this.done,
    };
  }
}

/** How many ends are reported together, unless one of them frees a place: each report costs the batch a workflow task. */
const ENDS_PER_REPORT = 10;

function isNews(now: PageReport, last: PageReport): boolean {
  return (
    now.open !== last.open ||
    now.counts.settled >= last.counts.settled + ENDS_PER_REPORT ||
    failuresOf(now.counts) > failuresOf(last.counts) ||
    reserved({ allotted: now.places, report: now }) < reserved({ allotted: now.places, report: last }) ||
    now.places < last.places
  );
}
