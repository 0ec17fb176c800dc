import {
  CancellationScope,
  ChildWorkflowCancellationType,
  ParentClosePolicy,
  proxyActivities,
  startChild,
  uuid4,
  workflowInfo,
} from '@temporalio/workflow';
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
 * A replay makes the same id; made of the run's own id, it would be another one in a run that a reset has made.
 */
export async function tell(event: Omit<Notice, 'timestamp'>): Promise<void> {
  const notice = { ...event, timestamp: new Date(Date.now()).toISOString() };
  await CancellationScope.nonCancellable(() =>
    startChild(NOTICE_WORKFLOW, {
      // A full stop would break the signature, which joins the id with others by it.
      workflowId: `follow-up-notice-${uuid4()}`,
      args: [notice],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      cancellationType: ChildWorkflowCancellationType.ABANDON,
      staticSummary: event.type,
    }),
  );
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
  await tell({ type: outcome === null ? 'follow-up.needs-decision' : 'follow-up.ended', data });
}
