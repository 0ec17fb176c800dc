import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  proxyActivities,
  TimeoutFailure,
} from '@temporalio/workflow';
import { type FollowUpActivities, type SendInput, type WorkerSettings } from '../../contract/activities';
import {
  isSendResult,
  REPORT_MARGIN_MS,
  SEND_PERMISSION_MS,
  type SendRecord,
  type SendResult,
  toSendRecord,
} from '../../contract/send-result';
import { fairnessKey } from '../../contract/ids';
import { POLL_AGAIN } from '../../contract/names';
import type { FollowUpEvent } from '../../follow-up/apply';
import type { Step } from '../../follow-up/step';
import { activitySummary } from '../../follow-up/web-ui';
import { outcomeFromUnreportedSend, type UnreportedSendCause } from '../../follow-up/unreported-send';
import { stopSend } from '../activity-proxies';
import { nonRetryableError } from '../non-retryable-error';
import { StoppableActivity } from '../stoppable-activity';
import type { FollowUpRun } from './run';

/**
 * How a send activity ended: its report, or the cause of its end without a report. A timeout has the Temporal server's record of
 * the send.
 */
type SendActivityEnd = SendResult | { readonly cause: UnreportedSendCause; readonly record?: SendRecord };

/**
 * Reads the job and makes at most one POST, with one activity. A cancellation or the deadline stops the send, but a POST in
 * progress is always awaited first.
 *
 * @returns null if nothing was started, because the follow-up is cancelled or its deadline has passed
 */
export async function performSend(
  step: Step & { do: 'send' },
  run: FollowUpRun,
  settings: WorkerSettings,
): Promise<FollowUpEvent | null> {
  const { prompt, state } = run;
  if (prompt === null)
    throw nonRetryableError(
      'InvalidRequest',
      "A run that continues another run has no message, so it can't send.",
    );
  const { permit, earlierBaseline } = step;
  const { plan, firstRunId, deadlineAt } = state;
  const { projectId, jobId, whenActive } = plan;
  const address = { projectId, jobId, prompt, whenActive };
  const input = { ...address, permittedRunId: permit.runId, earlierBaseline, deadlineAt, firstRunId };
  const startedAt = Date.now();
  // `waitUntilDue` may have ended at the deadline or in the workflow task of the cancellation. If an activity is started and
  // cancelled in one workflow task, the Temporal server never receives it and can't report that nothing was recorded.
  if (state.isCancelled || startedAt >= deadlineAt) return null;
  const summary = activitySummary(state, step);
  const send = new StoppableActivity<SendActivityEnd>(run, () => startSend(input, settings, summary));
  run.isSending = true;
  await send.waitForEndOrDeadline();
  const activityEnd = send.outcome ?? (await stopPendingSend(send, settings));
  run.isSending = false;
  const at = Date.now();
  const maxPostMs = SEND_PERMISSION_MS + settings.httpTimeoutMs;
  const event = { kind: 'send ended', startedAt, at, maxPostMs } as const;
  if ('outcome' in activityEnd)
    return { ...event, outcome: activityEnd.outcome, lockRunId: activityEnd.lockRunId };
  const { cause, record = { kind: 'unknown' } } = activityEnd;
  return { ...event, outcome: outcomeFromUnreportedSend(cause, record, at), lockRunId: null };
}

/**
 * Unless an attempt is running, prevents a further attempt of the pending send. Reads the Temporal server's record of the send,
 * and cancels the send.
 */
async function stopPendingSend(
  send: StoppableActivity<SendActivityEnd>,
  settings: WorkerSettings,
): Promise<SendActivityEnd> {
  const record = await stopSend();
  // The wait has a limit, because a paused activity with a dead worker never confirms its cancellation: its timeouts are paused
  // too.
  const activityEnd = (await send.stop(attemptTimeoutMs(settings))) ?? ({ cause: 'pending' } as const);
  return { record, ...activityEnd };
}

/** Returns the timeout of one attempt: the baseline read, the POST, and the requests to the Temporal server. */
function attemptTimeoutMs({ httpTimeoutMs }: WorkerSettings): number {
  return 2 * httpTimeoutMs + REPORT_MARGIN_MS;
}

/**
 * Starts the send activity. If the activity does not report, only the heartbeat before the POST shows that the message may have
 * been sent. Temporal retries a failed attempt after five seconds, perhaps on another worker.
 *
 * The activity has no heartbeat timeout, because this timeout could end a POST that could still receive its response. The
 * activity has no schedule-to-close timeout, because this timeout could hide the record. At the deadline, the workflow queries
 * the record and cancels the activity instead.
 */
function startSend(input: SendInput, settings: WorkerSettings, summary: string): Promise<SendActivityEnd> {
  const { sendMessage } = proxyActivities<FollowUpActivities>({
    taskQueue: settings.sendTaskQueue,
    startToCloseTimeout: attemptTimeoutMs(settings),
    scheduleToStartTimeout: Math.max(1, input.deadlineAt - Date.now()),
    retry: { initialInterval: 5_000, backoffCoefficient: 1 },
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    priority: { fairnessKey: fairnessKey(input.projectId) },
    summary,
  });
  return sendMessage(input).then(
    (value: unknown) => (isSendResult(value) ? value : { cause: 'ended without proof' }),
    unreportedSendFromFailure,
  );
}

/** Returns how a send ended, from the failure of its activity. A failure that is not listed here proves nothing about the send. */
function unreportedSendFromFailure(error: unknown): SendActivityEnd {
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  if (cause instanceof CancelledFailure) return { cause: 'cancelled' };
  if (cause instanceof TimeoutFailure)
    return { cause: 'timed out', record: toSendRecord(cause.lastHeartbeatDetails, { kind: 'nothing' }) };
  if (cause instanceof ApplicationFailure && cause.type === POLL_AGAIN)
    return { cause: 'failed before permission' };
  return { cause: 'ended without proof' };
}
