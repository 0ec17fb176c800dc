import { isDeepStrictEqual } from 'node:util';
import {
  type Client,
  QueryNotRegisteredError,
  QueryRejectedError,
  type WorkflowExecutionDescription,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { countReadsBeforeAttempt } from '../contract/activities';
import { POLL_AGAIN, QUERY_PROGRESS } from '../contract/names';
import type { Delivery, FollowUpProgress } from '../contract/result';
import { singleLine } from '../contract/text';
import { addCounts } from '../contract/response-counts';
import { findGrpcError } from '../temporal/grpc-status';
import { readProtoField, toDate } from '../temporal/proto-field';
import {
  describePendingActivity,
  listPollingWorkers,
  type PendingActivity,
  STOP_SEND_REASON,
} from '../temporal/raw-requests';
import { SERVER_TIMEOUT_MS, withTimeout, WORKER_TIMEOUT_MS } from './call-runner';
import {
  describeFollowUp,
  findFollowUp,
  type FollowUpDescription,
  hasRecordedPermission,
} from './description';
import type { NamedRun } from './named-run';
import { updateRunning, type WorkflowUpdate } from './update-running';

type TemporalRun = Pick<WorkflowExecutionDescription, 'workflowId' | 'runId'>;

/** The progress of a follow-up, or the Temporal server's description of the follow-up if no worker returns the progress. */
export type ProgressReport =
  | { readonly from: 'worker'; readonly progress: FollowUpProgress }
  | {
      /** No worker returned the progress within 3 s. */
      readonly from: 'server';
      readonly description: FollowUpDescription;
      /**
       * The number of workers whose last poll of the follow-up's task queue is at most 90 s old. A worker that has just ended
       * therefore counts for up to 90 s, because the Temporal server does not report the end of a worker. Null if the Temporal
       * server does not return the workers.
       */
      readonly workers: number | null;
    };

/** Queries a worker for the progress of a run, and adds the state of the pending activity from the Temporal server. */
export async function readProgress(client: Client, named: NamedRun): Promise<ProgressReport> {
  const run = await withTimeout(client, SERVER_TIMEOUT_MS, () => findFollowUp(client, named));
  try {
    const progress = await queryProgress(client, run);
    return { from: 'worker', progress: await withPendingActivity(client, run, progress) };
  } catch (error) {
    if (!isServerFailure(error)) throw error;
    const description = await withTimeout(client, SERVER_TIMEOUT_MS, () => describeFollowUp(client, named));
    const workers = await listPollingWorkers(client, description.taskQueue);
    return { from: 'server', description, workers: workers?.length ?? null };
  }
}

/** Returns whether the Temporal server reports the error. Otherwise, a bug or a wrong data converter is the cause. */
function isServerFailure(error: unknown): boolean {
  const others = [WorkflowNotFoundError, QueryNotRegisteredError, QueryRejectedError];
  return findGrpcError(error) !== undefined || others.some((each) => error instanceof each);
}

function queryProgress(client: Client, { workflowId, runId }: TemporalRun): Promise<FollowUpProgress> {
  const handle = client.workflow.getHandle(workflowId, runId);
  return withTimeout(client, WORKER_TIMEOUT_MS, () => handle.query<FollowUpProgress>(QUERY_PROGRESS));
}

/**
 * Adds the state of the pending send or poll from the Temporal server to the workflow's progress. The workflow reports a send in
 * progress as `unknown`. If the Temporal server has not recorded a send permission, nothing was sent yet.
 *
 * The pending activity belongs to the progress only if the workflow reports the same progress before and after the client reads
 * the activity from the Temporal server. Between the two requests, the workflow can change from send 1 to send 2. Without this
 * check, the client would combine the progress of send 1 with the missing permission of send 2, and report that send 1 sent
 * nothing.
 *
 * If one of the requests fails, the workflow's progress is returned without the activity.
 *
 * @param progress the progress that the workflow has just reported
 */
async function withPendingActivity(
  client: Client,
  run: TemporalRun,
  progress: FollowUpProgress,
): Promise<FollowUpProgress> {
  if (!isActivityExpected(progress)) return toCompleteProgress(progress, undefined);
  const type = progress.deliveryBeforeSend === undefined ? 'pollJob' : 'sendMessage';
  try {
    const describe = () => describePendingActivity(client, run, type);
    const pending = await withTimeout(client, SERVER_TIMEOUT_MS, describe);
    const later = await queryProgress(client, run);
    if (isDeepStrictEqual(later, progress)) return toCompleteProgress(progress, pending);
    return toCompleteProgress(later, undefined);
  } catch {
    return toCompleteProgress(progress, undefined);
  }
}

/** Returns whether an activity is pending whose state is newer than the workflow's progress. */
function isActivityExpected({ deliveryBeforeSend, nextPollAt }: FollowUpProgress): boolean {
  // While an activity polls, the workflow's own time for the next read is in the past.
  return deliveryBeforeSend !== undefined || (nextPollAt !== null && Date.parse(nextPollAt) <= Date.now());
}

/** @param pending undefined if the pending activity is not known; a send in progress is then reported as `unknown` */
function toCompleteProgress(
  { deliveryBeforeSend, ...progress }: FollowUpProgress,
  pending: PendingActivity | undefined,
): FollowUpProgress {
  if (pending === undefined) return progress;
  return deliveryBeforeSend === undefined
    ? withPendingPoll(progress, pending)
    : withPendingSend(progress, pending, deliveryBeforeSend);
}

function withPendingSend(
  progress: FollowUpProgress,
  pending: PendingActivity,
  deliveryBefore: Delivery,
): FollowUpProgress {
  const lastResponse =
    describeHindrance(pending, 'sendMessage') ??
    (pending.isStarted
      ? 'a worker is sending the message'
      : 'the send waits for a worker; if it keeps waiting, no worker polls the send task queue, or a rate limit delays the send');
  if (hasRecordedPermission(pending)) return { ...progress, lastResponse };
  const deliveryUnknownReason =
    deliveryBefore.verdict === 'unknown' ? progress.deliveryUnknownReason : undefined;
  return { ...progress, delivery: deliveryBefore, deliveryUnknownReason, lastResponse };
}

/** Returns why a pending activity makes no request: it is paused, or its latest attempt failed; undefined if neither is true. */
function describeHindrance(
  { paused, pauseInfo, isStarted, lastFailure }: PendingActivity,
  type: 'sendMessage' | 'pollJob',
): string | undefined {
  // An operator must not resume a send that the follow-up itself has paused.
  if (paused === true && pauseInfo?.manual?.reason === STOP_SEND_REASON) return STOP_SEND_REASON;
  if (paused === true && !isStarted)
    return `the activity ${type} is paused; resume it with \`temporal activity unpause\``;
  if (!lastFailure?.message || lastFailure.applicationFailureInfo?.type === POLL_AGAIN) return undefined;
  return `the activity ${type} failed and is retried: ${singleLine(lastFailure.message, 300)}`;
}

/** Adds the reads of a pending poll, each of which returned the job that the workflow already has. */
function withPendingPoll(workflowProgress: FollowUpProgress, pending: PendingActivity): FollowUpProgress {
  const lastResponse = describeHindrance(pending, 'pollJob') ?? workflowProgress.lastResponse;
  const progress = { ...workflowProgress, lastResponse };
  const nextPollAt = nextAttemptAt(pending);
  const reads = countReadsBeforeAttempt(readProtoField(pending.attempt) ?? 1);
  // Reads before the send are not polls, so they are not counted.
  if (progress.delivery.verdict === 'not-sent' || reads === 0 || progress.job === null)
    return { ...progress, nextPollAt };
  const responseCounts = addCounts(progress.responseCounts, { [progress.job.status]: reads });
  return { ...progress, nextPollAt, polls: progress.polls + reads, responseCounts };
}

/** Returns the time of the next attempt. Null while the activity is paused, and while an attempt reads the job. */
function nextAttemptAt({
  paused,
  isStarted,
  nextAttemptScheduleTime,
  scheduledTime,
}: PendingActivity): string | null {
  if (paused === true || isStarted) return null;
  return toDate(nextAttemptScheduleTime ?? scheduledTime)?.toISOString() ?? null;
}

/** Updates a run of a follow-up. @returns the progress after the update @throws as {@link updateRunning} does */
export async function updateFollowUp(
  client: Client,
  named: NamedRun,
  update: WorkflowUpdate,
): Promise<FollowUpProgress> {
  const find = (runId = named.runId) => findFollowUp(client, { ...named, runId });
  const { run, result } = await updateRunning(client, find, update);
  const progress = result as FollowUpProgress;
  // If the update requested a read, the caller gets the response to that read, not the pending activity's latest response.
  return {
    ...(await withPendingActivity(client, run, progress)),
    lastResponse: progress.lastResponse,
  };
}
