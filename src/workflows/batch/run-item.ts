import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ActivityFailure,
  CancellationScope,
  CancelledFailure,
  ChildWorkflowCancellationType,
  ChildWorkflowFailure,
  condition,
  isCancellation,
  ParentClosePolicy,
  startChild,
  TerminatedFailure,
  TimeoutFailure,
  type WorkflowIdReusePolicy,
} from '@temporalio/workflow';
import {
  BATCH_PRIORITY_KEY,
  brokenEnd,
  type EndOfItem,
  endOfFailure,
  endOfResult,
  endWithoutReceipt,
  isEndOfItem,
  type TryAgain,
} from '../../core/batch/batch';
import { fairnessKey } from '../../core/ids';
import { FOLLOW_UP_WORKFLOW } from '../../core/names';
import { followUpStart } from '../../core/starts';
import { ownRunId, questionProxy } from '../activity-proxies';
import { mayRunAgain, named, type PageItem } from './items';

/** What an item must know of its page. */
interface PageOfItem {
  readonly batchId: string;
  readonly again: TryAgain | null;
  /** Makes a start, unless the page is about to close. */
  readonly starting: <T>(start: () => Promise<T>) => Promise<T>;
}

/**
 * Runs one item to its end: a follow-up of its own, which continues if this page ends. One that exists is awaited instead.
 *
 * @returns the end of any kind; only the cancellation of this page is thrown
 */
export async function runItem(item: PageItem, page: PageOfItem): Promise<EndOfItem> {
  try {
    const last = item.mayExist ? await lastEnd(item, page) : null;
    if (last !== null && !mayRunAgain(item, last, page.again)) return last;
    // A completed run has an accepted message: it is never run again.
    const policy = last === null ? 'REJECT_DUPLICATE' : 'ALLOW_DUPLICATE_FAILED_ONLY';
    return (await startAndAwait(item, page, policy)) ?? (await awaitItem(item, page));
  } catch (error) {
    if (isCancellation(error)) throw error;
    return brokenEnd(error instanceof Error ? error.message : String(error));
  }
}

/** How an item has ended, asked for again when its turn comes: that may be long after the page has asked. */
async function lastEnd(item: PageItem, page: PageOfItem): Promise<EndOfItem> {
  for (let run = await ownRunId(); ;) {
    const end = await awaitItem(item, page);
    if (!mayRunAgain(item, end, page.again)) return end;
    const asked = run;
    run = await ownRunId();
    if (run === asked) return end;
    // A reset has made this run after the answer: the run before may have acted upon it. It is asked for again.
    item.before = null;
  }
}

/** @returns null when a follow-up of this name exists that the policy does not allow to be run again */
async function startAndAwait(
  item: PageItem,
  page: PageOfItem,
  policy: WorkflowIdReusePolicy,
): Promise<EndOfItem | null> {
  const lost = CancellationScope.nonCancellable(async () => {
    await condition(() => item.isLost);
    return null;
  });
  try {
    const child = await page.starting(() => startFollowUp(item, page.batchId, policy));
    const result = await Promise.race<unknown>([child.result(), lost]);
    return result === null ? await awaitItem(item, page) : endOfResult(result);
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return null;
    if (!(error instanceof ChildWorkflowFailure)) throw error;
    const { cause } = error;
    if (cause instanceof TerminatedFailure) return endWithoutReceipt('terminated');
    if (cause instanceof TimeoutFailure) return endWithoutReceipt('timed-out');
    if (!(cause instanceof CancelledFailure)) return endOfFailure(cause ?? error);
    // The receipt of a cancelled child is known to the server only.
    return CancellationScope.nonCancellable(() => awaitItem(item, page));
  }
}

function startFollowUp(
  { request, requestId }: PageItem,
  batchId: string,
  workflowIdReusePolicy: WorkflowIdReusePolicy,
) {
  const named = { ...request, requestId };
  return startChild(FOLLOW_UP_WORKFLOW, {
    ...followUpStart(named, batchId),
    args: [named],
    workflowIdReusePolicy,
    parentClosePolicy: ParentClosePolicy.ABANDON,
    cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
    // Its activities inherit the priority: single follow-ups go first.
    priority: { priorityKey: BATCH_PRIORITY_KEY, fairnessKey: fairnessKey(request.projectId) },
  });
}

/** The end of a follow-up that exists. One that the batch has started is cancelled together with the batch. */
export async function awaitItem(
  item: PageItem,
  page: Pick<PageOfItem, 'batchId'>,
  cancelOf?: string,
): Promise<EndOfItem> {
  const { followUpEnd } = questionProxy('the end of a follow-up that exists already');
  try {
    const end: unknown = await followUpEnd({ ...named(item), ...(cancelOf !== undefined && { cancelOf }) });
    return isEndOfItem(end)
      ? end
      : brokenEnd('Somebody else completed the activity that asks how it has ended.');
  } catch (error) {
    if (isCancellation(error) && cancelOf === undefined)
      return CancellationScope.nonCancellable(() => awaitItem(item, page, page.batchId));
    if (!(error instanceof ActivityFailure)) throw error;
    return brokenEnd(error.cause?.message ?? error.message);
  }
}
