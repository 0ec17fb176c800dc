import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  defineQuery,
  defineSignal,
  getExternalWorkflowHandle,
  isCancellation,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { isAllotment, isPageTrouble } from '../../core/wire-checks';
import { type EndOfItem, isFailure, type ItemEnd } from '../../core/batch';
import {
  type Allotment,
  type BatchCounts,
  type BatchFailureType,
  type PageInput,
  type PageReport,
  type PageResult,
  QUERY_ENDS,
  SIGNAL_ALLOT,
  SIGNAL_REPORT,
} from '../../core/batch-workflows';
import { runOf } from '../../core/ids';
import { ownRunId, questionProxy } from '../activity-proxies';
import { isNews } from './allotment';
import { pageProblems } from './check-batch';
import { countEnd, failuresOf, firstFailures, NO_COUNTS, pageDetails } from './counts';
import { itemsOf, nameOf, nextItems, type PageItem } from './items';
import { answerOf, findItems, ignoreCancellation } from './find-items';
import { awaitItem, runItem } from './run-item';

export const allotSignal = defineSignal<[Allotment]>(SIGNAL_ALLOT);
export const reportSignal = defineSignal<[PageReport]>(SIGNAL_REPORT);
const endsQuery = defineQuery<ItemEnd[], [since: number]>(QUERY_ENDS);

/**
 * Runs some items of a batch as follow-ups of their own, within the places that the batch grants. Items to the same job run
 * one after the other. A page never continues as new, so that no child's end is lost (measured: a child's end is not
 * delivered to a parent that has continued as new). It stays open until its batch has ended, because the namespace's
 * retention never removes an open workflow: what it knows of its items exists as long as the batch does.
 *
 * @throws ApplicationFailure `InvalidBatch`
 */
export async function followUpBatchPage(input: PageInput): Promise<PageResult> {
  const problems = pageProblems(input);
  if (problems.length > 0) {
    throw ApplicationFailure.create({
      type: 'InvalidBatch' satisfies BatchFailureType,
      message: `Invalid page of a batch: ${problems.join('; ')}. Nothing was sent.`,
      nonRetryable: true,
    });
  }
  const page = new Page(input);
  setHandler(allotSignal, (value: unknown) => {
    if (isAllotment(value)) page.allotment = value;
  });
  setHandler(endsQuery, (since) => page.ends.slice(since));
  try {
    return await page.run();
  } finally {
    await CancellationScope.nonCancellable(() => condition(allHandlersFinished));
  }
}

class Page {
  readonly ends: ItemEnd[] = [];
  allotment: Allotment = { places: 0, tolerated: null, mode: 'run' };

  private readonly items: readonly PageItem[];
  private readonly followUps = new CancellationScope({
    cancellable: true,
    parent: new CancellationScope({ cancellable: false }),
  });
  /** Follow-ups that the server was asked to start, and has not started yet. */
  private starts = 0;
  private counts: BatchCounts = NO_COUNTS;
  private lastReport: PageReport | null = null;
  /** The allotment that was in force at the last report. */
  private answered: Allotment | null = null;
  private batchIsGone = false;
  private done = false;
  /** The run of this workflow that knows which follow-ups exist: the first one of a batch's first run needs not ask. */
  private askedBy: string | null;

  constructor(private readonly input: PageInput) {
    this.items = itemsOf(input);
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
      if (this.askedBy !== null) return this.result();
      // Not a result: what the page of the earlier run knows still holds.
      const type: BatchFailureType = 'BatchIncomplete';
      const message =
        'The page was ended before it knew which of its follow-ups exist. It has started nothing.';
      throw ApplicationFailure.create({ type, message, nonRetryable: true });
    });
  }

  private async runItems(): Promise<void> {
    for (;;) {
      if (this.allotment.mode === 'cancel') this.followUps.cancel();
      while (this.due().length > 0) {
        // Both in one workflow task: a reset comes either before them or after them.
        if (await this.isInformed()) for (const item of this.due()) this.open(item, runItem);
      }
      setCurrentDetails(pageDetails(this.report()));
      if (this.isOver()) return;
      const { allotment, batchIsGone } = this;
      const open = this.openItems();
      // Only what has changed since: a condition that holds already would turn this into a loop that never yields.
      await condition(
        () => this.openItems() !== open || this.allotment !== allotment || this.batchIsGone !== batchIsGone,
      );
    }
  }

  /** Whether this run knows which of its items exist. Otherwise it asks, and what is due must be found out again. */
  private async isInformed(): Promise<boolean> {
    const run = await ownRunId();
    if (run === this.askedBy) return true;
    const isFirst = run === workflowInfo().firstExecutionRunId;
    const { ended, running } = await findItems(this.items, this.input, !isFirst);
    for (const { item, end, settledAt } of ended) this.settle(item, end, settledAt);
    for (const item of running) this.open(item, awaitItem);
    this.askedBy = run;
    return false;
  }

  /** The items that may be started now. */
  private due(): PageItem[] {
    if (this.done || this.allotment.mode !== 'run' || this.batchIsGone) return [];
    // The place of a failed item stays reserved until the batch has said that the failure is within the tolerance.
    const free = this.allotment.places - this.unconfirmed() - this.openItems();
    return nextItems(this.items).slice(0, Math.max(0, free));
  }

  /** Failures of which the batch has not yet said that they are within the tolerance. */
  private unconfirmed(): number {
    const { tolerated } = this.allotment;
    return tolerated === null ? 0 : Math.max(0, failuresOf(this.counts) - tolerated);
  }

  private open(item: PageItem, work: typeof runItem): void {
    const { batchId, again = null } = this.input;
    const starting = <T>(start: () => Promise<T>): Promise<T> => this.starting(item, start);
    item.state = 'open';
    // Cancelled follow-ups are still waited for.
    void this.followUps
      .run(() => work(item, { batchId, again, starting }))
      .then(
        (end) => {
          this.settle(item, end);
        },
        (error: unknown) => {
          item.state = 'to-come';
          ignoreCancellation(error);
        },
      );
  }

  /**
   * Makes the start of a follow-up. The server does not start a child whose parent has closed meanwhile, although it is to
   * be abandoned (measured), so a page waits for its starts before it closes, and makes none once it is about to.
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
      throw error;
    } finally {
      this.starts -= 1;
    }
  }

  private settle(item: PageItem, end: EndOfItem, settledAt = new Date(Date.now()).toISOString()): void {
    const { outcome, delivery, evidence, prLink, message } = end;
    item.state = 'ended';
    this.ends.push({ ...nameOf(item), outcome, delivery, evidence, prLink, message, settledAt });
    this.counts = countEnd(this.counts, end);
  }

  private openItems(): number {
    return this.items.filter(({ state }) => state === 'open').length;
  }

  private isOver(): boolean {
    if (this.allotment.mode === 'leave') return true;
    if (this.openItems() > 0) return false;
    return this.batchIsGone || this.allotment.mode !== 'run' || nextItems(this.items).length === 0;
  }

  private isClosed(): boolean {
    return this.allotment.mode === 'leave' || this.batchIsGone;
  }

  /** Finds out what no event reports: that the batch was terminated, or a follow-up was deleted. */
  private async watchForTrouble(): Promise<void> {
    const { batchWorkflowId, run } = this.input;
    const { pageTrouble } = questionProxy('are the batch and the open follow-ups there?');
    for (;;) {
      const batch = this.batchIsGone ? null : batchWorkflowId;
      const known = this.items.filter(({ isLost }) => isLost).map(({ workflowId }) => workflowId);
      const trouble = await answerOf(pageTrouble({ batchWorkflowId: batch, run, known }));
      if (!isPageTrouble(trouble)) continue;
      this.batchIsGone ||= trouble.batchIsGone;
      for (const item of this.items) item.isLost ||= trouble.lost.includes(item.workflowId);
    }
  }

  /** Reports to the batch from start to end, one report at a time. */
  private async reportToBatch(): Promise<void> {
    const batch = getExternalWorkflowHandle(this.input.batchWorkflowId);
    await CancellationScope.nonCancellable(async () => {
      for (;;) {
        await condition(() => this.mustReport() || this.batchIsGone);
        if (this.batchIsGone) return;
        const report = this.report();
        this.lastReport = report;
        this.answered = this.allotment;
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
    const { lastReport, allotment } = this;
    if (lastReport === null || this.done) return true;
    // The batch does not know of all failures: those that an earlier run left, or a report that it lost in a reset.
    if (this.unconfirmed() > 0 && this.answered !== allotment) return true;
    return isNews(this.report(), lastReport);
  }

  private report(): PageReport {
    const { run, page } = this.input;
    const open = this.openItems();
    return {
      run,
      pageRun: runOf(workflowInfo().firstExecutionRunId),
      page: page.number,
      after: page.after,
      followedBy: page.followedBy,
      wants: open + nextItems(this.items).length,
      places: this.allotment.places,
      open,
      counts: this.counts,
      failures: firstFailures([this.ends.filter(isFailure)]),
      done: this.done,
    };
  }

  /** After a reset, what the replaced run has started is unknown. */
  private async result(): Promise<PageResult> {
    const run = await ownRunId();
    const unsettled = this.items.filter(({ state }) => state !== 'ended');
    const left = unsettled.filter(({ mayExist }) => mayExist || run !== workflowInfo().firstExecutionRunId);
    return {
      ends: this.ends,
      left: left.map(({ workflowId }) => workflowId),
      notStarted: unsettled.length - left.length,
    };
  }
}
