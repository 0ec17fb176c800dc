import { type BatchItem, type EndOfItem, requestIdOf } from '../../core/batch';
import type { PageInput } from '../../core/batch-workflows';
import { followUpWorkflowId } from '../../core/ids';

/** One item of a page: a follow-up of its own, which keeps its id for ever. */
export interface PageItem {
  readonly workflowId: string;
  readonly requestId: string;
  readonly item: BatchItem;
  /** Items to one job run one after the other. */
  readonly job: string;
  state: 'to-come' | 'open' | 'ended';
  /** Its follow-up may exist: it was started, or nobody can tell that it was not. */
  mayExist: boolean;
  /** How it had ended when an earlier run of the batch ended; null where that is not known. */
  before: EndOfItem | null;
  /** No event will report its end: its follow-up was deleted, or the server has lost the event. */
  isLost: boolean;
}

export function itemsOf({ batchId, page, earlier = null }: PageInput): PageItem[] {
  return page.items.map((item) => {
    const { projectId, jobId } = item.request;
    const requestId = requestIdOf(batchId, item);
    return {
      workflowId: followUpWorkflowId(projectId, jobId, requestId),
      requestId,
      item,
      job: JSON.stringify([projectId, jobId]),
      state: 'to-come',
      mayExist: earlier !== null,
      before: null,
      isLost: false,
    };
  });
}

/** The next item of each job that has none open: the order of the items is kept within a job. */
export function nextItems(items: readonly PageItem[]): PageItem[] {
  const busy = new Set(items.filter(({ state }) => state === 'open').map(({ job }) => job));
  return items.filter(({ state, job }) => {
    if (state !== 'to-come' || busy.has(job)) return false;
    busy.add(job);
    return true;
  });
}

/** What the end of an item says of the item. */
export function nameOf({ workflowId, requestId, item }: PageItem) {
  const { projectId, jobId } = item.request;
  return { workflowId, projectId, jobId, requestId };
}
