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
import type { Notice, NoticeActivities, WorkerSettings } from '../core/activities';
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
 * Where the worker has a receiver, starts the workflow that tells of an event, and waits for its start only: the server would
 * drop it where its parent ends before. A replay makes the same id; made of the run's own id, it would be another one in a run
 * that a reset has made.
 *
 * @param known the worker's settings; null where it has not been asked yet
 */
export async function tell(
  event: Omit<Notice, 'timestamp'>,
  known: WorkerSettings | null = null,
): Promise<void> {
  const { notify = false } = known ?? (await workerSettings());
  if (!notify) return;
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

/** Tells of an end or, with null, that the follow-up needs a decision. */
export async function tellOf(state: FollowUpState, outcome: string | null): Promise<void> {
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
  await tell(
    { type: outcome === null ? 'follow-up.needs-decision' : 'follow-up.ended', data },
    state.settings,
  );
}
