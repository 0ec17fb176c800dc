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
  workflowInfo,
} from '@temporalio/workflow';
import type { WorkerSettings } from '../../core/activities';
import { isFoundEnd } from '../../core/wire-checks';
import {
  BATCH_PRIORITY_KEY,
  type BatchItem,
  type ItemEnd,
  mayTryAgain,
  requestIdOf,
  type TryAgain,
} from '../../core/batch';
import type { EarlierPage, FoundEnd, PageInput } from '../../core/batch-workflows';
import { fairnessKey, followUpWorkflowId } from '../../core/ids';
import {
  FOLLOW_UP_WORKFLOW,
  followUpAttributes,
  followUpSummary,
  MEMO_PROMPT_DIGEST,
} from '../../core/names';
import { endProxy, ownRunId } from '../activity-proxies';
import { keyword } from '../keyword';
import { brokenEnd, endOfFailedChild, endOfFound, type EndOfItem, endOfResult } from './item-end';

/** One item that is to be followed up by a workflow of its own, which keeps its id for ever. */
export interface NamedItem {
  readonly workflowId: string;
  readonly requestId: string;
  readonly item: BatchItem;
  /** No earlier run of the batch can have started it. */
  readonly isNew: boolean;
  /** How it had ended when an earlier run of the batch ended; null where that is not known. */
  readonly before: EndOfItem | null;
}

/** What an item must know of its page. */
interface PageOfItem {
  readonly batchId: string;
  readonly settings: WorkerSettings;
  readonly again: TryAgain | null;
  /** Resolves when no event will report the follow-up's end any more. */
  readonly lost: (workflowId: string) => Promise<null>;
  /** Makes a start, unless the page is about to close. */
  readonly starting: <T>(start: () => Promise<T>) => Promise<T>;
}

/** @param requestId the item's own, or the one made of the batch's id and the item's key */
function workflowIdOf({ request: { projectId, jobId } }: BatchItem, requestId: string): string {
  return followUpWorkflowId(projectId, jobId, requestId);
}

/**
 * Runs one item to its end: a follow-up of its own, which goes on if this page ends. One that is there already, from an
 * earlier run of the batch or from anybody else, is awaited instead: its message is not sent again.
 *
 * @returns the end of any kind; only the cancellation of this page is thrown
 */
export async function runItem(named: NamedItem, page: PageOfItem): Promise<ItemEnd> {
  const end = await endOf(named, page);
  const { projectId, jobId } = named.item.request;
  const settledAt = new Date(Date.now()).toISOString();
  return { workflowId: named.workflowId, projectId, jobId, requestId: named.requestId, ...end, settledAt };
}

async function endOf(named: NamedItem, page: PageOfItem): Promise<EndOfItem> {
  try {
    const { firstExecutionRunId } = workflowInfo();
    let run = await ownRunId();
    if (named.isNew && run === firstExecutionRunId) {
      const end = await startAndAwait(named, page, WorkflowIdReusePolicy.REJECT_DUPLICATE);
      if (end !== null) return end;
    }
    for (;;) {
      const found = await existing(named, page);
      if (!startsAgain(named, page, found, run === firstExecutionRunId)) return endOfFound(found);
      const asked = run;
      run = await ownRunId();
      if (run === asked) break;
      // A reset has made this run after the answer: the run before may have acted upon it. It is asked for again.
    }
    // A completed run has an accepted message: it is never run again.
    const end = await startAndAwait(named, page, WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY);
    return end ?? endOfFound(await existing(named, page));
  } catch (error) {
    if (isCancellation(error)) throw error;
    return brokenEnd(error instanceof Error ? error.message : String(error));
  }
}

/** Whether an item gets another run, by what its last run has left. */
function startsAgain(
  { before }: NamedItem,
  { again }: PageOfItem,
  found: FoundEnd,
  isFirst: boolean,
): boolean {
  if (again === null) return false;
  // It has been forgotten. What an earlier page knows of it holds, unless this page may have run it since.
  if (found.kind === 'not-found' && before !== null && isFirst) return mayTryAgain(before, again);
  return mayTryAgain(endOfFound(found), again);
}

/** @returns null when a follow-up of this name is there that the policy does not allow to be run again */
async function startAndAwait(
  named: NamedItem,
  page: PageOfItem,
  policy: WorkflowIdReusePolicy,
): Promise<EndOfItem | null> {
  try {
    const child = await page.starting(() => startFollowUp(named, page.batchId, policy));
    const result = await Promise.race<unknown>([child.result(), page.lost(named.workflowId)]);
    return result === null ? endOfFound(await existing(named, page)) : endOfResult(result);
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return null;
    if (!(error instanceof ChildWorkflowFailure)) throw error;
    const end = endOfFailedChild(error);
    return end ?? endOfFound(await CancellationScope.nonCancellable(() => existing(named, page)));
  }
}

function startFollowUp(
  { workflowId, requestId, item }: NamedItem,
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

/** The end of a follow-up that is there. One that the batch has started is cancelled with the batch's own. */
async function existing(named: NamedItem, page: PageOfItem, cancelOf?: string): Promise<FoundEnd> {
  const { workflowId, item } = named;
  const { promptDigest, request } = item;
  const summary = 'the end of a follow-up that is there already';
  const { followUpEnd } = endProxy(page.settings, request.projectId, summary);
  try {
    const found: unknown = await followUpEnd({
      workflowId,
      promptDigest,
      ...(cancelOf === undefined ? {} : { cancelOf }),
    });
    if (isFoundEnd(found)) return found;
    const message = 'The question for its end was completed by somebody else.';
    return { kind: 'failure', type: '', message, details: null };
  } catch (error) {
    if (isCancellation(error) && cancelOf === undefined)
      return CancellationScope.nonCancellable(() => existing(named, page, page.batchId));
    if (!(error instanceof ActivityFailure)) throw error;
    return { kind: 'failure', type: '', message: error.cause?.message ?? error.message, details: null };
  }
}

/** What a page has to do, and the ends that stay as they are. */
interface ItemsOfPage {
  readonly kept: readonly ItemEnd[];
  /** The items that are left, by job, in the order in which they came. */
  readonly lanes: NamedItem[][];
}

/** @param before what an earlier run of the batch has done; null if that is unknown */
export function itemsOfPage(
  { batchId, page, again = null, inDoubt = false }: PageInput,
  before: EarlierPage | null,
): ItemsOfPage {
  const ends = new Map(before?.ends.map((end) => [end.workflowId, end]));
  const left = new Set(before?.left);
  const isUnknown = before === null || inDoubt;
  const kept: ItemEnd[] = [];
  const lanes = new Map<string, NamedItem[]>();
  for (const item of page.items) {
    const requestId = requestIdOf(batchId, item);
    const workflowId = workflowIdOf(item, requestId);
    const end = ends.get(workflowId) ?? null;
    if (end !== null && (again === null || !mayTryAgain(end, again))) {
      kept.push(end);
      continue;
    }
    const isNew = end === null && !isUnknown && !left.has(workflowId);
    const lane = lanes.get(laneOf(item)) ?? [];
    lane.push({ workflowId, requestId, item, isNew, before: end });
    lanes.set(laneOf(item), lane);
  }
  return { kept, lanes: [...lanes.values()] };
}

function laneOf({ request: { projectId, jobId } }: BatchItem): string {
  return JSON.stringify([projectId, jobId]);
}
