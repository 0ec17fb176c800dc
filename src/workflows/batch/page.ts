import {
  ActivityFailure,
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
import type { WorkerSettings } from '../../core/activities';
import { isAllotment, isEarlierPage, isPageTrouble } from '../../core/wire-checks';
import type { FailedItem, ItemEnd } from '../../core/batch';
import {
  type Allotment,
  type BatchCounts,
  type BatchFailureType,
  type EarlierPage,
  type PageInput,
  type PageReport,
  type PageResult,
  QUERY_ENDS,
  SIGNAL_ALLOT,
  SIGNAL_REPORT,
} from '../../core/batch-workflows';
import { runOf } from '../../core/ids';
import { ownRunId, pageProxy, settingsProxy } from '../activity-proxies';
import { pageProblems } from './check-batch';
import { countEnd, failuresOf, firstFailures, isFailure, NO_COUNTS, pageDetails } from './counts';
import { itemsOfPage, type NamedItem, runItem } from './run-item';
import { isNews } from './allotment';

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

  private lanes: NamedItem[][];
  private readonly open = new Map<string, Promise<void>>();
  private readonly busyLanes = new Set<NamedItem[]>();
  private readonly failures: FailedItem[] = [];
  private readonly followUps = new CancellationScope({
    cancellable: true,
    parent: new CancellationScope({ cancellable: false }),
  });
  /** Follow-ups that were started, or may have been, and whose end is unknown. */
  private readonly unsettled = new Set<string>();
  /** Follow-ups that the server was asked to start, and has not started yet. */
  private starts = 0;
  /** Follow-ups that no longer exist: no event will report their end. */
  private readonly lost = new Set<string>();
  private counts: BatchCounts = NO_COUNTS;
  private lastReport: PageReport | null = null;
  /** The allotment that was in force at the last report. */
  private answered: Allotment | null = null;
  private batchIsGone = false;
  private done = false;

  constructor(private readonly input: PageInput) {
    this.lanes = itemsOfPage(input, null).lanes;
  }

  async run(): Promise<PageResult> {
    const looking = new CancellationScope();
    let reporting: Promise<void> | null = null;
    try {
      const settings = await settingsProxy.workerSettings();
      await this.restore(settings);
      reporting = this.reportToBatch();
      looking.run(() => this.watchForTrouble(settings)).catch(ignoreCancellation);
      await this.runItems(settings);
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
      return this.result();
    });
  }

  /** Takes over the ends from an earlier run of the batch: what it has done is not done again. */
  private async restore(settings: WorkerSettings): Promise<void> {
    const { earlier = null } = this.input;
    let before: EarlierPage | null = { ends: [], left: [] };
    if (earlier !== null) {
      // Until it is known, any of them may have been started.
      for (const { workflowId } of this.lanes.flat()) this.unsettled.add(workflowId);
      const { earlierPage } = pageProxy(settings, 'what the batch has done before');
      const answer = await answerOf(earlierPage(earlier));
      before = isEarlierPage(answer) ? answer : null;
      this.unsettled.clear();
    }
    const { kept, lanes } = itemsOfPage(this.input, before);
    for (const end of kept) this.settle(end);
    this.lanes = lanes;
    for (const { workflowId, isNew } of lanes.flat()) if (!isNew) this.unsettled.add(workflowId);
  }

  private async runItems(settings: WorkerSettings): Promise<void> {
    for (;;) {
      this.startItems(settings);
      setCurrentDetails(pageDetails(this.report()));
      if (this.isOver()) return;
      const { allotment, batchIsGone } = this;
      const open = this.open.size;
      // Only what has changed since: a condition that holds already would turn this into a loop that never yields.
      await condition(
        () => this.open.size !== open || this.allotment !== allotment || this.batchIsGone !== batchIsGone,
      );
      if (this.allotment.mode === 'cancel') this.followUps.cancel();
    }
  }

  /** Starts items as long as there are places, round the jobs. */
  private startItems(settings: WorkerSettings): void {
    if (this.allotment.mode !== 'run' || this.batchIsGone) return;
    for (const lane of this.lanes) {
      // The place of a failed item stays reserved until the batch has said that the failure is within the tolerance.
      if (this.open.size >= this.allotment.places - this.unconfirmed()) return;
      const [next] = lane;
      if (next === undefined || this.busyLanes.has(lane)) continue;
      lane.shift();
      this.busyLanes.add(lane);
      this.open.set(next.workflowId, this.follow(next, lane, settings));
    }
  }

  /** Failures of which the batch has not yet said that they are within the tolerance. */
  private unconfirmed(): number {
    const { tolerated } = this.allotment;
    return tolerated === null ? 0 : Math.max(0, failuresOf(this.counts) - tolerated);
  }

  private async follow(named: NamedItem, lane: NamedItem[], settings: WorkerSettings): Promise<void> {
    const { batchId, again = null } = this.input;
    // Cancelled follow-ups are still waited for.
    const lost = (workflowId: string): Promise<null> =>
      CancellationScope.nonCancellable(async () => {
        await condition(() => this.lost.has(workflowId));
        return null;
      });
    const end = await this.followUps
      .run(() =>
        runItem(named, {
          batchId,
          settings,
          again,
          lost,
          starting: (start) => this.starting(named.workflowId, start),
        }),
      )
      .catch((error: unknown) => {
        if (isCancellation(error)) return null;
        throw error;
      });
    this.open.delete(named.workflowId);
    this.busyLanes.delete(lane);
    if (end !== null) this.settle(end);
  }

  /**
   * Makes the start of a follow-up. The server does not start a child whose parent has closed meanwhile, although it is to
   * be abandoned (measured), so a page waits for its starts before it closes, and makes none once it is about to.
   */
  private async starting<T>(workflowId: string, start: () => Promise<T>): Promise<T> {
    if (this.done) throw new CancelledFailure('The page starts nothing more.');
    const wasUnsettled = this.unsettled.has(workflowId);
    this.unsettled.add(workflowId);
    this.starts += 1;
    try {
      return await start();
    } catch (error) {
      // Cancelled before the server was asked; later it waits for the child.
      if (isCancellation(error) && !wasUnsettled) this.unsettled.delete(workflowId);
      throw error;
    } finally {
      this.starts -= 1;
    }
  }

  private settle(end: ItemEnd): void {
    const { workflowId, outcome, message } = end;
    this.unsettled.delete(workflowId);
    this.ends.push(end);
    if (isFailure(end)) this.failures.push({ workflowId, outcome, message });
    this.counts = countEnd(this.counts, end);
  }

  private isOver(): boolean {
    if (this.allotment.mode === 'leave') return true;
    if (this.open.size > 0) return false;
    return this.batchIsGone || this.allotment.mode !== 'run' || this.lanesLeft() === 0;
  }

  private isClosed(): boolean {
    return this.allotment.mode === 'leave' || this.batchIsGone;
  }

  private lanesLeft(): number {
    return this.lanes.filter((lane) => lane.length > 0 || this.busyLanes.has(lane)).length;
  }

  /** Finds out what no event reports: that the batch was terminated, or a follow-up was deleted. */
  private async watchForTrouble(settings: WorkerSettings): Promise<void> {
    const { batchWorkflowId, run } = this.input;
    const { pageTrouble } = pageProxy(settings, 'are the batch and the open follow-ups there?');
    for (;;) {
      const batch = this.batchIsGone ? null : batchWorkflowId;
      const trouble = await answerOf(pageTrouble({ batchWorkflowId: batch, run, known: [...this.lost] }));
      if (!isPageTrouble(trouble)) continue;
      this.batchIsGone ||= trouble.batchIsGone;
      for (const workflowId of trouble.lost) this.lost.add(workflowId);
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
    const { lastReport } = this;
    if (lastReport === null || this.done) return true;
    const { allotment } = this;
    // The batch does not know of all failures: those that an earlier run left, or a report that it lost in a reset.
    if (this.unconfirmed() > 0 && this.answered !== allotment) return true;
    return isNews(this.report(), lastReport);
  }

  private report(): PageReport {
    const { run, page } = this.input;
    return {
      run,
      pageRun: runOf(workflowInfo().firstExecutionRunId),
      page: page.number,
      after: page.after,
      followedBy: page.followedBy,
      wants: this.lanesLeft(),
      places: this.allotment.places,
      open: this.open.size,
      counts: this.counts,
      failures: firstFailures([this.failures]),
      done: this.done,
    };
  }

  /** After a reset, what the replaced run has started is unknown. */
  private async result(): Promise<PageResult> {
    if ((await ownRunId()) !== workflowInfo().firstExecutionRunId) {
      for (const { workflowId } of this.lanes.flat()) this.unsettled.add(workflowId);
      for (const workflowId of this.open.keys()) this.unsettled.add(workflowId);
    }
    const left = [...this.unsettled];
    return {
      ends: this.ends,
      left,
      notStarted: this.input.page.items.length - this.counts.settled - left.length,
    };
  }
}

/** What the server says to a page; null where an operator has ended the question in another way. */
async function answerOf(question: Promise<unknown>): Promise<unknown> {
  try {
    return await question;
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    return null;
  }
}

/** The end of what goes on beside a workflow, in a scope that is cancelled when it is no longer needed. */
export function ignoreCancellation(error: unknown): void {
  if (!isCancellation(error)) throw error;
}
