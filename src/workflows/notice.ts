import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  CancellationScope,
  ChildWorkflowCancellationType,
  ParentClosePolicy,
  proxyActivities,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import { digestOf } from '../core/ids';
import { NOTICE_WORKFLOW } from '../core/names';
import type { Notice, NoticeActivities } from '../core/activities';
import { keywordKey } from '../core/starts';
import { workerSettings } from './activity-proxies';
import { type FollowUpState, told } from './follow-up/state';

/** An attempt has ten seconds, and five more to begin and report; the next one may come when the receiver asks for it. */
const { postNotice } = proxyActivities<NoticeActivities>({
  startToCloseTimeout: 15_000,
  scheduleToCloseTimeout: '24 hours',
  retry: { initialInterval: 5_000, backoffCoefficient: 2, maximumInterval: '15 minutes' },
  summary: 'tell the receiver',
});

/** Tells a receiver of one event. Its workflow id is the `webhook-id`. @throws ActivityFailure after a day, or where it answered 410 */
export async function followUpNotice(notice: Notice): Promise<void> {
  await postNotice(notice);
}

/**
 * Starts the workflow that tells of an event, and waits for its start only: the server would drop it where its parent ends before.
 *
 * @param occasion what tells events of the same type in one run apart
 */
export async function tell(event: Omit<Notice, 'timestamp'>, occasion = ''): Promise<void> {
  const { workflowId, runId } = workflowInfo();
  const notice = { ...event, timestamp: new Date(Date.now()).toISOString() };
  const id = digestOf(JSON.stringify([workflowId, runId, event.type, occasion])).slice(0, 32);
  try {
    await CancellationScope.nonCancellable(() =>
      startChild(NOTICE_WORKFLOW, {
        // A full stop would break the signature, which joins the id with others by it.
        workflowId: `follow-up-notice-${id}`,
        args: [notice],
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
        parentClosePolicy: ParentClosePolicy.ABANDON,
        cancellationType: ChildWorkflowCancellationType.ABANDON,
        staticSummary: event.type,
      }),
    );
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

/** Tells the worker's receiver, where it has one, of an end or, with null, that the follow-up needs a decision. */
export async function tellOf(state: FollowUpState, outcome: string | null): Promise<void> {
  // One that was cancelled before its first step has not asked yet.
  const { notify = false } = state.settings ?? (await workerSettings());
  if (!notify) return;
  const { plan, job, evidence } = state;
  const { workflowId, typedSearchAttributes } = workflowInfo();
  const data = {
    workflowId,
    projectId: plan.projectId,
    jobId: plan.jobId,
    requestId: plan.requestId,
    batchId: typedSearchAttributes.get(keywordKey('FollowUpBatch')) ?? null,
    outcome,
    status: job?.status ?? null,
    prLink: job?.prLink ?? null,
    verdict: told(state).verdict,
    evidence,
  };
  if (outcome !== null) await tell({ type: 'follow-up.ended', data });
  // A further POST may need a further decision.
  else await tell({ type: 'follow-up.needs-decision', data }, String(state.delivery.sends));
}
