import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ActivityFailure,
  CancellationScope,
  ChildWorkflowCancellationType,
  ChildWorkflowFailure,
  isCancellation,
  ParentClosePolicy,
  startChild,
  WorkflowIdReusePolicy,
} from '@temporalio/workflow';
import type { WorkerSettings } from '../../contract/activities';
import { BATCH_PRIORITY_KEY, type BatchItem, type ItemEnd } from '../../contract/batch';
import { fairnessKey } from '../../contract/fairness';
import { FOLLOW_UP_WORKFLOW, MEMO_PROMPT_DIGEST } from '../../contract/names';
import type { FollowUpResult } from '../../contract/result';
import { followUpAttributes, followUpSummary } from '../../contract/start-words';
import { followUpWorkflowId } from '../../contract/workflow-id';
import { endProxy } from '../activity-proxies';
import { keyword } from '../keyword';
import { brokenEnd, endOfFailedChild, endOfFound, endOfResult, type EndOfItem } from './item-end';

/** One item that is to be followed up by a workflow of its own. */
export interface NamedItem {
  readonly workflowId: string;
  readonly requestId: string;
  readonly item: BatchItem;
}

/** @param requestId the item's own, or the one made of the batch's id and the item's key */
export function nameItem(item: BatchItem, requestId: string): NamedItem {
  const { projectId, jobId } = item.request;
  return { workflowId: followUpWorkflowId(projectId, jobId, requestId), requestId, item };
}

/**
 * Runs one item to its end: a follow-up of its own, which goes on if this page ends. One that is there already, from an
 * earlier run of the batch or from anybody else, is awaited instead: its message is not sent again.
 *
 * @returns the end, whatever it is; nothing is thrown but the cancellation of this page
 */
export async function runItem(named: NamedItem, batchId: string, settings: WorkerSettings): Promise<ItemEnd> {
  const end = await endOf(named, batchId, settings);
  const { projectId, jobId } = named.item.request;
  const settledAt = new Date(Date.now()).toISOString();
  return { workflowId: named.workflowId, projectId, jobId, requestId: named.requestId, ...end, settledAt };
}

async function endOf(named: NamedItem, batchId: string, settings: WorkerSettings): Promise<EndOfItem> {
  try {
    const child = await startFollowUp(named, batchId);
    return endOfResult((await child.result()) as FollowUpResult);
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return endOfExisting(named, settings);
    if (error instanceof ChildWorkflowFailure) {
      const end = endOfFailedChild(error);
      return end ?? (await CancellationScope.nonCancellable(() => endOfExisting(named, settings)));
    }
    if (isCancellation(error)) throw error;
    return brokenEnd(error instanceof Error ? error.message : String(error));
  }
}

function startFollowUp({ workflowId, requestId, item }: NamedItem, batchId: string) {
  const { request, promptDigest } = item;
  return startChild(FOLLOW_UP_WORKFLOW, {
    workflowId,
    args: [{ ...request, requestId }],
    workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
    parentClosePolicy: ParentClosePolicy.ABANDON,
    cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
    // Its activities inherit the priority: whoever follows up a single job goes first.
    priority: { priorityKey: BATCH_PRIORITY_KEY, fairnessKey: fairnessKey(request.projectId) },
    memo: { [MEMO_PROMPT_DIGEST]: promptDigest },
    typedSearchAttributes: [
      ...followUpAttributes(request).map(([name, text]) => keyword(name, text)),
      keyword('FollowUpBatch', batchId),
    ],
    staticSummary: followUpSummary(request),
  });
}

async function endOfExisting({ workflowId, item }: NamedItem, settings: WorkerSettings): Promise<EndOfItem> {
  try {
    const { promptDigest, request } = item;
    const existing = endProxy(settings, request.projectId, 'the end of a follow-up that is there already');
    return endOfFound(await existing.followUpEnd({ workflowId, promptDigest }));
  } catch (error) {
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
    return brokenEnd(error.cause?.message ?? error.message);
  }
}
