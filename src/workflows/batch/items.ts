import { ActivityFailure, isCancellation, metricMeter } from '@temporalio/workflow';
import {
  type BatchCounts,
  type BatchItem,
  type EndOfItem,
  isEndOfItem,
  type ItemEnd,
  mayTryAgain,
  requestIdOf,
  type TryAgain,
} from '../../core/batch/batch';
import { type EarlierPage, isEarlierPage, type PageInput, type PageResult } from '../../core/batch/workflows';
import { listOf, orNull } from '../../core/checks';
import { digestOf, followUpWorkflowId } from '../../core/ids';
import { measure } from '../../core/metrics';
import type { NamedFollowUp } from '../../core/wire';
import { questionProxy } from '../activity-proxies';
import { countEnd, NO_COUNTS } from './counts';

/** One item of a page: a follow-up that keeps its id for ever. */
export interface PageItem {
  readonly workflowId: string;
  readonly requestId: string;
  readonly request: BatchItem['request'];
  /** Items to one job run one after the other. */
  readonly job: string;
  state: 'to-come' | 'open' | 'ended';
  /** Its follow-up may exist: it was started, or nobody can tell that it was not. */
  mayExist: boolean;
  /** Its name was taken before the batch ever started it. */
  isForeign: boolean;
  /** How it had ended when an earlier run of the batch ended; null where that is not known. */
  before: ItemEnd | null;
  /** No event will report its end: its follow-up was deleted, or the server has lost the event. */
  isLost: boolean;
}

/** The items of a page, and what the page knows of them. */
export class PageItems {
  readonly ends: ItemEnd[] = [];
  counts: BatchCounts = NO_COUNTS;
  private readonly all: readonly PageItem[];

  constructor(private readonly input: PageInput) {
    this.all = input.page.items.map((item) => {
      const { request } = item;
      const { projectId, jobId } = request;
      const requestId = requestIdOf(input.batchId, item);
      return {
        workflowId: followUpWorkflowId(projectId, jobId, requestId),
        requestId,
        request,
        job: JSON.stringify([projectId, jobId]),
        state: 'to-come',
        mayExist: (input.earlier ?? null) !== null,
        isForeign: false,
        before: null,
        isLost: false,
      };
    });
  }

  get open(): number {
    return this.all.filter(({ state }) => state === 'open').length;
  }

  /** The next item of each job that has none open: the order of the items is kept within a job. */
  next(): PageItem[] {
    const busy = new Set(this.all.filter(({ state }) => state === 'open').map(({ job }) => job));
    return this.all.filter(({ state, job }) => {
      if (state !== 'to-come' || busy.has(job)) return false;
      busy.add(job);
      return true;
    });
  }

  settle(item: PageItem, end: EndOfItem, settledAt = new Date(Date.now()).toISOString()): void {
    const { outcome, delivery, evidence, prLink, message } = end;
    const { workflowId, requestId, request } = item;
    const { projectId, jobId } = request;
    item.state = 'ended';
    const names = { workflowId, projectId, jobId, requestId };
    this.ends.push({ ...names, outcome, delivery, evidence, prLink, message, settledAt });
    this.counts = countEnd(this.counts, end);
    measure(metricMeter, 'batchItems', 1, { outcome });
  }

  /**
   * The one rule of every run after the first: asks for each item that may exist before any is started. What has ended keeps
   * its end, unless a retry may run it again.
   *
   * @param wasReset what the run before has done is unknown then, so any item may exist
   * @returns the items whose follow-ups run
   */
  async find(wasReset: boolean): Promise<PageItem[]> {
    const { earlier = null, again = null } = this.input;
    const before = earlier === null || wasReset ? null : await knownBefore(earlier);
    const ends = new Map(before?.ends.map((end) => [end.workflowId, end]));
    const left = new Set(before?.left);
    const kept: [PageItem, ItemEnd][] = [];
    const asked: PageItem[] = [];
    for (const item of this.all.filter(({ state }) => state === 'to-come')) {
      const end = ends.get(item.workflowId) ?? null;
      item.before = end;
      item.mayExist = before === null || left.has(item.workflowId) || end !== null;
      if (end !== null && !mayTryAgain(end, again)) kept.push([item, end]);
      else if (item.mayExist) asked.push(item);
    }
    const found = await endsOf(asked);
    for (const [item, end] of kept) this.settle(item, end, end.settledAt);
    for (const [index, item] of asked.entries()) {
      const end = found[index] ?? null;
      if (end !== null && !mayRunAgain(item, end, again)) this.settle(item, end);
    }
    return asked.filter((_, index) => found[index] === null);
  }

  /** The items of these follow-ups get no event of their ends. */
  lose(workflowIds: readonly string[]): void {
    for (const item of this.all) item.isLost ||= workflowIds.includes(item.workflowId);
  }

  get lost(): string[] {
    return this.all.filter(({ isLost }) => isLost).map(({ workflowId }) => workflowId);
  }

  /** @param wasReset what the replaced run has started is unknown then */
  result(wasReset: boolean): PageResult {
    const unsettled = this.all.filter(({ state }) => state !== 'ended');
    const left = unsettled.filter(({ mayExist }) => mayExist || wasReset).map(({ workflowId }) => workflowId);
    return { ends: this.ends, left, notStarted: unsettled.length - left.length };
  }
}

/** Whether a retry gives an item another run. What an earlier page knows of one that was forgotten still holds. */
export function mayRunAgain({ before }: PageItem, end: EndOfItem, again: TryAgain | null): boolean {
  return mayTryAgain(end.outcome === 'gone' && before !== null ? before : end, again);
}

async function knownBefore(earlier: string): Promise<EarlierPage | null> {
  const { earlierPage } = questionProxy('what the batch has done before');
  const answer = await answerOf(earlierPage(earlier));
  return isEarlierPage(answer) ? answer : null;
}

const areEnds = listOf(orNull(isEndOfItem));

export function named({ workflowId, request, isForeign }: PageItem): NamedFollowUp {
  return { workflowId, promptDigest: digestOf(request.prompt), isForeign };
}

async function endsOf(items: readonly PageItem[]): Promise<readonly (EndOfItem | null)[]> {
  const { followUpEnds } = questionProxy('which of its follow-ups exist, and how they have ended');
  const asked = items.map(named);
  let ends: unknown = [];
  while (!areEnds(ends) || ends.length !== items.length) ends = await answerOf(followUpEnds(asked));
  return ends;
}

/** What the server says to a page; null where an operator has ended the question in another way. */
export async function answerOf(question: Promise<unknown>): Promise<unknown> {
  try {
    return await question;
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    return null;
  }
}

/** For work in a scope that is cancelled when it is no longer needed. */
export function ignoreCancellation(error: unknown): void {
  if (!isCancellation(error)) throw error;
}
