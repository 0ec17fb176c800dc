import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ActivityFailure,
  ApplicationFailure,
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
  WorkflowIdReusePolicy,
} from '@temporalio/workflow';
import { BATCH_PRIORITY_KEY, type EndOfItem, mayTryAgain, type TryAgain } from '../../core/batch';
import { brokenEnd, endOfFailure, endOfResult, endWithoutReceipt } from '../../core/batch-item-end';
import { fairnessKey } from '../../core/ids';
import {
  FOLLOW_UP_WORKFLOW,
  followUpAttributes,
  followUpSummary,
  MEMO_PROMPT_DIGEST,
} from '../../core/names';
import { isEndOfItem } from '../../core/wire-checks';
import { ownRunId, questionProxy } from '../activity-proxies';
import { keyword } from '../keyword';
import type { PageItem } from './items';

/** What an item must know of its page. */
interface PageOfItem {
  readonly batchId: string;
  readonly again: TryAgain | null;
  /** Makes a start, unless the page is about to close. */
  readonly starting: <T>(start: () => Promise<T>) => Promise<T>;
}

/**
 * Runs one item to its end: a follow-up of its own, which goes on if this page ends. One that exists already is awaited
 * instead: its message is not sent again.
 *
 * @returns the end of any kind; only the cancellation of this page is thrown
 */
export async function runItem(item: PageItem, page: PageOfItem): Promise<EndOfItem> {
  try {
    if (item.mayExist) return await runAgain(item, page);
    return (
      (await startAndAwait(item, page, WorkflowIdReusePolicy.REJECT_DUPLICATE)) ??
      (await awaitItem(item, page))
    );
  } catch (error) {
    if (isCancellation(error)) throw error;
    return brokenEnd(error instanceof Error ? error.message : String(error));
  }
}

/** Gives an item another run, if its last one still allows that: its turn may come long after it was asked for. */
async function runAgain(item: PageItem, page: PageOfItem): Promise<EndOfItem> {
  for (let run = await ownRunId(); ;) {
    const end = await awaitItem(item, page);
    if (!mayRunAgain(item, end, page.again)) return end;
    const asked = run;
    run = await ownRunId();
    if (run === asked) break;
    // A reset has made this run after the answer: the run before may have acted upon it. It is asked for again.
    item.before = null;
  }
  // A completed run has an accepted message: it is never run again.
  const end = await startAndAwait(item, page, WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY);
  return end ?? (await awaitItem(item, page));
}

/** Whether a retry gives an item another run. What an earlier page knows of one that was forgotten still holds. */
export function mayRunAgain({ before }: PageItem, end: EndOfItem, again: TryAgain | null): boolean {
  return mayTryAgain(end.outcome === 'gone' && before !== null ? before : end, again);
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
    // The receipt of a cancelled child is known to the server only.
    return endOfFailedChild(error) ?? CancellationScope.nonCancellable(() => awaitItem(item, page));
  }
}

/** The end of a child that failed; null for one that was cancelled. */
function endOfFailedChild({ cause, message }: ChildWorkflowFailure): EndOfItem | null {
  if (cause instanceof CancelledFailure) return null;
  if (cause instanceof TerminatedFailure) return endWithoutReceipt('terminated');
  if (cause instanceof TimeoutFailure) return endWithoutReceipt('timed-out');
  if (!(cause instanceof ApplicationFailure)) return brokenEnd(cause?.message ?? message);
  return endOfFailure(cause.type ?? '', cause.message, cause.details?.[0]);
}

function startFollowUp(
  { workflowId, requestId, item }: PageItem,
  batchId: string,
  workflowIdReusePolicy: WorkflowIdReusePolicy,
) {
  const { request, promptDigest } = item;
  return startChild(FOLLOW_UP_WORKFLOW, {
    workflowId,
    args: [{ ...request, requestId }],
    workflowIdReusePolicy,
    parentClosePolicy: ParentClosePolicy.ABANDON,
    cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
    // Its activities inherit the priority: single follow-ups go first.
    priority: { priorityKey: BATCH_PRIORITY_KEY, fairnessKey: fairnessKey(request.projectId) },
    memo: { [MEMO_PROMPT_DIGEST]: promptDigest },
    typedSearchAttributes: [
      ...followUpAttributes(request).map(([name, text]) => keyword(name, text)),
      keyword('FollowUpBatch', batchId),
    ],
    staticSummary: followUpSummary(request),
  });
}

/** The end of a follow-up that exists. One that the batch has started is cancelled together with the batch. */
export async function awaitItem(
  item: PageItem,
  page: Pick<PageOfItem, 'batchId'>,
  cancelOf?: string,
): Promise<EndOfItem> {
  const { workflowId } = item;
  const { promptDigest } = item.item;
  const { followUpEnd } = questionProxy('the end of a follow-up that exists already');
  try {
    const end: unknown = await followUpEnd({
      workflowId,
      promptDigest,
      ...(cancelOf === undefined ? {} : { cancelOf }),
    });
    return isEndOfItem(end) ? end : brokenEnd('The question for its end was completed by somebody else.');
  } catch (error) {
    if (isCancellation(error) && cancelOf === undefined)
      return CancellationScope.nonCancellable(() => awaitItem(item, page, page.batchId));
    if (!(error instanceof ActivityFailure)) throw error;
    return brokenEnd(error.cause?.message ?? error.message);
  }
}
