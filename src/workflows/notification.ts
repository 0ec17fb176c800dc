import {
  CancellationScope,
  ChildWorkflowCancellationType,
  log,
  ParentClosePolicy,
  proxyActivities,
  startChild,
  uuid4,
  workflowInfo,
} from '@temporalio/workflow';
import { NOTIFICATION_WORKFLOW } from '../contract/names';
import type { Notification, NotificationActivities, WorkerSettings } from '../contract/activities';
import { keywordAttributeKey } from '../contract/follow-up-start-options';
import { workerSettings } from './activity-proxies';
import { toEndMessage, toOutcomeName } from '../follow-up/failure-details';
import { findUnknownDeliveryReason, findEvidence, reportedDelivery } from '../follow-up/receipt';
import type { FollowUpState } from '../follow-up/state';
import type { FollowUpEnd } from '../follow-up/step';

/**
 * The receiver has ten seconds to respond, and an attempt has five more seconds to start and report. A failure may set the retry
 * delay.
 */
const { postNotification } = proxyActivities<NotificationActivities>({
  startToCloseTimeout: 15_000,
  scheduleToCloseTimeout: '24 hours',
  retry: { initialInterval: 5_000, backoffCoefficient: 2, maximumInterval: '15 minutes' },
  summary: 'post the notification',
});

/**
 * Sends one notification. The workflow ID is the `webhook-id`.
 *
 * @throws ActivityFailure after a day, or if the receiver returned 410
 */
export async function followUpNotification(notification: Notification): Promise<void> {
  await postNotification(notification);
}

/**
 * Starts the workflow that sends a notification, if the worker has a receiver. The function waits until the workflow has started,
 * because otherwise the Temporal server drops the start if the parent ends first. The function does not wait for the notification
 * itself. A failed start is logged and never changes the parent's result.
 *
 * The workflow ID is from `uuid4` of workflow code, which is seeded. A replay produces the same ID. A run that a
 * reset made also produces the same IDs up to the reset point. An ID that contains the run ID would be different there.
 *
 * @param knownSettings the worker's settings, or null to get them with a local activity
 */
export async function notify(
  event: Omit<Notification, 'timestamp'>,
  knownSettings: WorkerSettings | null = null,
): Promise<void> {
  const settings = knownSettings ?? (await workerSettings());
  if (settings.notify !== true) return;
  const notification = { ...event, timestamp: new Date(Date.now()).toISOString() };
  try {
    await CancellationScope.nonCancellable(() =>
      startChild(NOTIFICATION_WORKFLOW, {
        // The ID must not have a period, because the signed text joins the ID and other parts with periods.
        workflowId: `follow-up-notification-${uuid4()}`,
        args: [notification],
        parentClosePolicy: ParentClosePolicy.ABANDON,
        cancellationType: ChildWorkflowCancellationType.ABANDON,
        staticSummary: event.type,
      }),
    );
  } catch (error) {
    log.error('the notification workflow could not be started', { type: event.type, error });
  }
}

/** Notifies the receiver that a follow-up has ended or, if the outcome is null, that the follow-up needs a decision. */
export async function notifyOfFollowUp(
  state: FollowUpState,
  outcome: FollowUpEnd | null,
  settings: WorkerSettings,
): Promise<void> {
  const { plan, job } = state;
  const { workflowId, runId, typedSearchAttributes } = workflowInfo();
  const data = {
    workflowId,
    runId,
    projectId: plan.projectId,
    jobId: plan.jobId,
    requestId: plan.requestId,
    batchId: typedSearchAttributes.get(keywordAttributeKey('FollowUpBatch')) ?? null,
    outcome: outcome && toOutcomeName(outcome),
    message: outcome === null ? findUnknownDeliveryReason(state) : toEndMessage(outcome, state),
    status: job?.status ?? null,
    prLink: job?.prLink ?? null,
    verdict: reportedDelivery(state).verdict,
    evidence: findEvidence(state),
  };
  const type = outcome === null ? 'follow-up.needs-decision' : 'follow-up.ended';
  await notify({ type, data }, settings);
}
