import {
  allHandlersFinished,
  CancellationScope,
  condition,
  defineQuery,
  defineSignal,
  getExternalWorkflowHandle,
  isCancellation,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { FailedItem, ItemEnd } from '../../contract/batch';
import { requestIdOf } from '../../contract/batch-id';
import {
  type Allotment,
  type BatchCounts,
  type PageInput,
  type PageReport,
  type PageResult,
  QUERY_ENDS,
  SIGNAL_ALLOT,
  SIGNAL_REPORT,
} from '../../contract/batch-workflows';
import { settingsProxy } from '../activity-proxies';
import { countEnd, failuresOf, firstFailures, isFailure, NO_COUNTS } from './counts';
import { pageDetails } from './details';
import { reserved } from './places';
import { type NamedItem, nameItem, runItem } from './run-item';

export const allotSignal = defineSignal<[Allotment]>(SIGNAL_ALLOT);
export const reportSignal = defineSignal<[PageReport]>(SIGNAL_REPORT);
export const endsQuery = defineQuery<ItemEnd[], [since: number]>(QUERY_ENDS);

/** So many ends are told together, unless one of them frees a place: each report costs the batch a workflow task. */
const ENDS_PER_REPORT = 10;

/**
 * Some items of a batch: runs them as follow-ups of their own, within the places that the batch allots, the items of one
 * job one after the other. It never continues as new, so that no end of a child gets lost (measured: a child's end is
 * not delivered to a parent that has continued as new).
 */
export async function followUpBatchPage(input: PageInput): Promise<PageResult> {
  const page = new Page(input);
  setHandler(allotSignal, (allotment) => {
    page.allotment = allotment;
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

  private readonly lanes: NamedItem[][];
  private readonly open = new Map<string, Promise<void>>();
  private readonly busyLanes = new Set<NamedItem[]>();
  private readonly failures: FailedItem[] = [];
  private readonly followUps = new CancellationScope({
    cancellable: true,
    parent: new CancellationScope({ cancellable: false }),
  });
  private counts: BatchCounts = NO_COUNTS;
  private told: PageReport | null = null;
  private batchIsGone = false;
  private left = false;

  constructor(private readonly input: PageInput) {
    this.lanes = lanesOf(input);
  }

  async run(): Promise<PageResult> {
    const settings = await settingsProxy.workerSettings();
    const telling = this.tellBatch();
    try {
      for (;;) {
        this.startItems(settings);
        setCurrentDetails(pageDetails(this.report()));
        if (this.isOver()) break;
        const { settled } = this.counts;
        const { allotment, batchIsGone } = this;
        // Only what has changed since: a condition that holds already would turn this into a loop that never yields.
        await condition(
          () =>
            this.counts.settled > settled || this.allotment !== allotment || this.batchIsGone !== batchIsGone,
        );
        if (this.allotment.mode === 'cancel') this.followUps.cancel();
      }
    } catch (error) {
      if (!isCancellation(error)) throw error;
      // Whoever cancels a page leaves its follow-ups running, as the end of the batch does.
    }
    this.left = true;
    await CancellationScope.nonCancellable(() => telling);
    return {
      ends: this.ends,
      notStarted: this.input.page.items.length - this.counts.settled - this.open.size,
    };
  }

  /** Starts items as long as there are places, round the jobs. */
  private startItems(settings: Parameters<typeof runItem>[2]): void {
    if (this.allotment.mode !== 'run' || this.batchIsGone) return;
    const { tolerated, places } = this.allotment;
    // A failure's place is the batch's until it has said that the failure is within the tolerance.
    const untold = tolerated === null ? 0 : Math.max(0, failuresOf(this.counts) - tolerated);
    for (const lane of this.lanes) {
      if (this.open.size >= places - untold) return;
      const [next] = lane;
      if (next === undefined || this.busyLanes.has(lane)) continue;
      lane.shift();
      this.busyLanes.add(lane);
      this.open.set(next.workflowId, this.follow(next, lane, settings));
    }
  }

  private async follow(
    named: NamedItem,
    lane: NamedItem[],
    settings: Parameters<typeof runItem>[2],
  ): Promise<void> {
    const end = await this.followUps
      .run(() => runItem(named, this.input.batchId, settings))
      .catch((error: unknown) => {
        if (isCancellation(error)) return null;
        throw error;
      });
    this.open.delete(named.workflowId);
    this.busyLanes.delete(lane);
    if (end === null) return;
    this.ends.push(end);
    if (isFailure(end))
      this.failures.push({ workflowId: end.workflowId, outcome: end.outcome, message: end.message });
    this.counts = countEnd(this.counts, end);
  }

  private isOver(): boolean {
    if (this.left || this.allotment.mode === 'leave') return true;
    if (this.open.size > 0) return false;
    return this.batchIsGone || this.allotment.mode !== 'run' || this.lanesLeft() === 0;
  }

  private lanesLeft(): number {
    return this.lanes.filter((lane) => lane.length > 0 || this.busyLanes.has(lane)).length;
  }

  /** Tells the batch where this page stands, from its first moment to its last, and never two reports at a time. */
  private async tellBatch(): Promise<void> {
    const batch = getExternalWorkflowHandle(this.input.batchWorkflowId);
    await CancellationScope.nonCancellable(async () => {
      do {
        await condition(() => this.mustTell());
        const report = this.report();
        this.told = report;
        try {
          await batch.signal(reportSignal, report);
        } catch {
          // It was terminated, or ended before this page was handed over.
          this.batchIsGone = true;
        }
      } while (!this.told.done && !this.batchIsGone);
    });
  }

  private mustTell(): boolean {
    const { told } = this;
    if (told === null || this.left) return true;
    const now = this.report();
    return (
      now.open !== told.open ||
      now.counts.settled >= told.counts.settled + ENDS_PER_REPORT ||
      failuresOf(now.counts) > failuresOf(told.counts) ||
      reserved({ allotted: now.places, report: now }) < reserved({ allotted: now.places, report: told }) ||
      now.places < told.places
    );
  }

  private report(): PageReport {
    const { run, page } = this.input;
    return {
      run,
      workflowId: workflowInfo().workflowId,
      page: page.number,
      after: page.after,
      followedBy: page.followedBy,
      wants: this.lanesLeft(),
      places: this.allotment.places,
      open: this.open.size,
      counts: this.counts,
      failures: firstFailures([this.failures]),
      done: this.left,
    };
  }
}

/** The items by job, in the order in which they came. */
function lanesOf({ batchId, page }: PageInput): NamedItem[][] {
  const lanes = new Map<string, NamedItem[]>();
  for (const item of page.items) {
    const { projectId, jobId } = item.request;
    const key = JSON.stringify([projectId, jobId]);
    const lane = lanes.get(key) ?? [];
    lane.push(nameItem(item, requestIdOf(batchId, item)));
    lanes.set(key, lane);
  }
  return [...lanes.values()];
}
