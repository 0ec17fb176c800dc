import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  proxyActivities,
  TimeoutFailure,
} from '@temporalio/workflow';
import {
  type FollowUpActivities,
  isSendCheckpoint,
  isSendResult,
  SEND_PERMISSION_MS,
  type SendInput,
  type SendRecord,
  type SendResult,
  type WorkerSettings,
} from '../../core/activities';
import { fairnessKey } from '../../core/ids';
import { POLL_AGAIN } from '../../core/names';
import { singleLine } from '../../core/text';
import type { FollowUpEvent } from '../../follow-up/apply';
import type { Step } from '../../follow-up/step';
import { activitySummary } from '../../follow-up/summary';
import { endOfUnreportedSend, type UnreportedSend } from '../../follow-up/unreported-send';
import { REPORT_MARGIN_MS, stopSend } from '../activity-proxies';
import { failure } from '../failure';
import { StoppableActivity } from '../stoppable-activity';
import type { Performance } from './perform';
import type { FollowUpRun } from './run';

type SendActivityEnd =
  | { readonly kind: 'reported'; readonly result: SendResult }
  | { readonly kind: 'unreported'; readonly ended: UnreportedSend };

/**
 * Reads the job and makes at most one POST, with one activity. A cancellation or the deadline gives the send up; a POST in progress
 * is always awaited first.
 *
 * @returns null if nothing was started, because the follow-up is cancelled or its deadline has passed
 */
export async function performSend(
  step: Step & { do: 'send' },
  { run, prompt, settings }: Performance,
): Promise<FollowUpEvent | null> {
  if (prompt === null) throw failure('InvalidRequest', 'A run that continues another one has no message.');
  const { plan, firstRunId, deadlineAt } = run.state;
  const { projectId, jobId, whenActive } = plan;
  const { permit, earlierBaseline } = step;
  const address = { projectId, jobId, prompt, whenActive };
  const input = { ...address, permittedRunId: permit.runId, earlierBaseline, deadlineAt, firstRunId };
  const startedAt = Date.now();
  // The wait before this send may have ended at the deadline or in the task that cancels: an activity that is started and given up
  // in one task is never known to the Temporal server, which then can't tell that nothing was recorded.
  if (run.state.isCancelled || startedAt >= deadlineAt) return null;
  const summary = activitySummary(run.state, step);
  const send = startSend(input, settings, summary);
  run.isSending = true;
  await send.endedOrDue(() => run.state);
  const { end, record } = await endOrRecord(send, settings, run);
  run.isSending = false;
  const at = Date.now();
  const earlierPostEndsAt = at + SEND_PERMISSION_MS + settings.httpTimeoutMs;
  const event = { kind: 'send ended', startedAt, at, earlierPostEndsAt } as const;
  if (end.kind === 'reported') return { ...event, ...end.result };
  return { ...event, end: endOfUnreportedSend(end.ended, record, at), lockRunId: null };
}

/** Gives up a send that has not ended: keeps it from starting, asks what it has recorded, and cancels it. */
async function endOrRecord(
  send: StoppableActivity<SendActivityEnd>,
  settings: WorkerSettings,
  run: FollowUpRun,
) {
  if (send.end !== undefined) return { end: send.end, record: UNKNOWN_RECORD };
  const record = await stopSend();
  run.touch();
  // A paused activity with a dead worker never confirms its cancellation, because its timeouts stand still.
  const end = await send.stop(attemptTimeoutMs(settings));
  return { end: end ?? ({ kind: 'unreported', ended: { kind: 'pending' } } as const), record };
}

const UNKNOWN_RECORD: SendRecord = { kind: 'unknown' };

/** One attempt takes at most the baseline read, the POST, and the requests to the Temporal server around them. */
function attemptTimeoutMs({ httpTimeoutMs }: WorkerSettings): number {
  return 2 * httpTimeoutMs + REPORT_MARGIN_MS;
}

/**
 * The heartbeat before the POST is the only proof of a send. Temporal retries what fails around it, at a flat interval, so that
 * another worker can make the next attempt. A heartbeat timeout could end a POST that still gets its response, and a
 * schedule-to-close timeout could hide what was recorded: at the deadline, the workflow asks for the record and cancels instead.
 */
function startSend(input: SendInput, settings: WorkerSettings, summary: string) {
  const { sendMessage } = proxyActivities<FollowUpActivities>({
    taskQueue: settings.sendTaskQueue,
    startToCloseTimeout: attemptTimeoutMs(settings),
    scheduleToStartTimeout: Math.max(1, input.deadlineAt - Date.now()),
    retry: { initialInterval: 5_000, backoffCoefficient: 1 },
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    priority: { fairnessKey: fairnessKey(input.projectId) },
    summary,
  });
  return new StoppableActivity<SendActivityEnd>(() =>
    sendMessage(input).then(
      (value: unknown) =>
        isSendResult(value)
          ? { kind: 'reported', result: value }
          : { kind: 'unreported', ended: { kind: 'completed by another client' } },
      (error: unknown) => ({ kind: 'unreported', ended: unreportedSend(error) }),
    ),
  );
}

/** How a send ended, from the failure of its activity. No other failure is interpreted. */
function unreportedSend(error: unknown): UnreportedSend {
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  if (cause instanceof CancelledFailure) return { kind: 'cancelled' };
  if (cause instanceof TimeoutFailure)
    return { kind: 'timed out', record: recordOf(cause.lastHeartbeatDetails) };
  if (cause instanceof ApplicationFailure && cause.type === POLL_AGAIN)
    return { kind: 'failed before permission', message: singleLine(cause.message, 300) };
  return { kind: 'completed by another client' };
}

/** Another client can record anything as a heartbeat, and a POST may have been made all the same. */
function recordOf(details: unknown): SendRecord {
  if (details === null || details === undefined) return { kind: 'nothing' };
  return isSendCheckpoint(details) ? { kind: 'checkpoint', ...details } : UNKNOWN_RECORD;
}
