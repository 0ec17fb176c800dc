import { isDeepStrictEqual } from 'node:util';
import {
  type Client,
  QueryNotRegisteredError,
  QueryRejectedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { countReadsBeforeAttempt } from '../contract/activities';
import { isRecord } from '../contract/checks';
import { QUERY_PROGRESS } from '../contract/names';
import type { Delivery, FollowUpProgress } from '../contract/result';
import { singleLine } from '../contract/text';
import { addCounts } from '../contract/response-counts';
import { findGrpcError } from '../temporal/grpc-status';
import { readProtoField } from '../temporal/proto-field';
import { optionalTsToDate, findPendingActivity, listPollingWorkers } from '../temporal/sdk-internals';
import { SERVER_TIMEOUT_MS, withTimeout, WORKER_TIMEOUT_MS } from './call-runner';
import {
  describeFollowUp,
  findFollowUp,
  type FollowUpDescription,
  hasRecordedPermission,
} from './description';
import { waitTimeoutError, explainMissingResponse, updateRejectedError, wrongStateError } from './errors';

/** The progress of a follow-up, or the Temporal server's description of the follow-up if no worker returns the progress. */
export type ProgressReport =
  | { readonly from: 'worker'; readonly progress: FollowUpProgress }
  | {
      /** No worker returned the progress within 3 s. */
      readonly from: 'server';
      readonly description: FollowUpDescription;
      /** The number of workers that poll the follow-up's task queue. Null if the Temporal server does not return the number. */
      readonly workers: number | null;
    };

/** The maximum number of queries, because a follow-up that polls every 100 ms can change between any two requests. */
const MAX_QUERIES = 3;

/** Queries a worker for the progress, and adds the state of the pending activity from the Temporal server. */
export async function readProgress(client: Client, workflowId: string): Promise<ProgressReport> {
  try {
    const progress = await queryProgress(client, workflowId);
    // A batch has a query with the same name.
    if (!isRecord(progress) || !('phase' in progress)) await findFollowUp(client, workflowId);
    return { from: 'worker', progress: await withPendingActivity(client, workflowId, progress) };
  } catch (error) {
    // The description shows the recorded state. The call throws NotFoundError if the follow-up does not exist.
    if (!isServerFailure(error)) throw error;
    const description = await withTimeout(client, SERVER_TIMEOUT_MS, () =>
      describeFollowUp(client, workflowId),
    );
    const workers = await listPollingWorkers(client, description.taskQueue);
    return { from: 'server', description, workers: workers?.length ?? null };
  }
}

/** Returns whether the Temporal server reports the error. Otherwise, a bug or a wrong data converter is the cause. */
function isServerFailure(error: unknown): boolean {
  const others = [WorkflowNotFoundError, QueryNotRegisteredError, QueryRejectedError];
  return findGrpcError(error) !== undefined || others.some((each) => error instanceof each);
}

function queryProgress(client: Client, workflowId: string): Promise<FollowUpProgress> {
  const handle = client.workflow.getHandle(workflowId);
  return withTimeout(client, WORKER_TIMEOUT_MS, () => handle.query<FollowUpProgress>(QUERY_PROGRESS));
}

/**
 * Adds the state of the pending send or poll from the Temporal server to the workflow's progress. The workflow reports a send in
 * progress as `unknown`. If the Temporal server has not recorded a send permission, nothing was sent yet.
 *
 * The pending activity belongs to the progress only if the workflow reports the same progress before and after the description.
 * Example: the progress describes send 1, which has its permission, and the description shows send 2, which has none. The client
 * would then report the delivery from before send 1.
 *
 * @param first the progress that the workflow has just reported
 */
async function withPendingActivity(
  client: Client,
  workflowId: string,
  first: FollowUpProgress,
): Promise<FollowUpProgress> {
  let progress = first;
  for (let queries = 1; queries < MAX_QUERIES && isActivityExpected(progress); queries += 1) {
    const pending = await describePending(client, workflowId, progress);
    const later = await queryProgress(client, workflowId);
    if (isDeepStrictEqual(later, progress)) return toCompleteProgress(progress, pending);
    progress = later;
  }
  return toCompleteProgress(progress, undefined);
}

/** Returns whether an activity is pending whose state is newer than the workflow's progress. */
function isActivityExpected({ deliveryBeforeSend, nextPollAt }: FollowUpProgress): boolean {
  // While an activity polls, the workflow's own time for the next read is in the past.
  return deliveryBeforeSend !== undefined || (nextPollAt !== null && Date.parse(nextPollAt) <= Date.now());
}

async function describePending(client: Client, workflowId: string, progress: FollowUpProgress) {
  const handle = client.workflow.getHandle(workflowId);
  const description = await withTimeout(client, SERVER_TIMEOUT_MS, () => handle.describe());
  const type = progress.deliveryBeforeSend === undefined ? 'pollJob' : 'sendMessage';
  return findPendingActivity(client, description, type);
}

/** @param pending undefined if the pending activity is not known; a send in progress is then reported as `unknown` */
function toCompleteProgress(
  { deliveryBeforeSend, ...progress }: FollowUpProgress,
  pending: Pending | undefined,
): FollowUpProgress {
  if (pending === undefined) return progress;
  return deliveryBeforeSend === undefined
    ? withPendingPoll(progress, pending)
    : withPendingSend(progress, pending, deliveryBeforeSend);
}

type Pending = NonNullable<Awaited<ReturnType<typeof findPendingActivity>>>;

function withPendingSend(
  progress: FollowUpProgress,
  pending: Pending,
  deliveryBefore: Delivery,
): FollowUpProgress {
  const failure = pending.lastFailure?.message;
  const lastResponse = failure
    ? `the send activity failed and is retried: ${singleLine(failure, 300)}`
    : pending.isStarted
      ? 'a worker is sending the message'
      : 'the send waits for a worker; if it keeps waiting, no worker polls the send task queue, or a rate limit delays the send';
  if (hasRecordedPermission(pending)) return { ...progress, lastResponse };
  const deliveryUnknownReason =
    deliveryBefore.verdict === 'unknown' ? progress.deliveryUnknownReason : undefined;
  return { ...progress, delivery: deliveryBefore, deliveryUnknownReason, lastResponse };
}

/** Adds the reads of a pending poll, each of which returned the job that the workflow already has. */
function withPendingPoll(progress: FollowUpProgress, pending: Pending): FollowUpProgress {
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
}: Pending): string | null {
  if (paused === true || isStarted) return null;
  return optionalTsToDate(nextAttemptScheduleTime ?? scheduledTime)?.toISOString() ?? null;
}

type UpdateTarget = Pick<FollowUpDescription, 'workflowId' | 'taskQueue' | 'state' | 'runId'> & {
  readonly startsAt?: string | null;
};

export interface WorkflowUpdate {
  readonly name: string;
  /** Makes the arguments from the description of the running workflow. @default no arguments */
  readonly args?: (found: UpdateTarget) => readonly unknown[];
}

/** Updates a follow-up. @returns the progress after the update @throws as {@link updateRunning} does */
export async function updateFollowUp(
  client: Client,
  workflowId: string,
  update: WorkflowUpdate,
): Promise<FollowUpProgress> {
  const find = () => describeFollowUp(client, workflowId);
  const progress = await updateRunning<FollowUpProgress>(client, find, update);
  // The update has already taken effect, so a failure of these requests must not fail the call.
  const completeProgress = await withPendingActivity(client, workflowId, progress).catch(() =>
    toCompleteProgress(progress, undefined),
  );
  // If the update requested a read, the caller gets the response to that read, not the pending activity's latest response.
  return { ...completeProgress, lastResponse: progress.lastResponse };
}

/** The timeout of an update. `pollNow` waits for one read of the job, which takes at most 30 s with the default timeout. */
const UPDATE_TIMEOUT_MS = 45_000;

/** The timeout of an update if no worker polls the task queue. The time is short, but a starting worker can still respond. */
const NO_WORKER_TIMEOUT_MS = 2_000;

/**
 * Updates a running workflow.
 *
 * @throws WaitTimeoutError, FollowUpError `ALREADY_ENDED` or `UPDATE_REJECTED`, or an error of `find`
 */
export async function updateRunning<Result>(
  client: Client,
  find: () => Promise<UpdateTarget>,
  { name, args = () => [] }: WorkflowUpdate,
): Promise<Result> {
  const target = await find();
  const { workflowId, taskQueue, state, startsAt = null } = target;
  if (state !== 'running') throw wrongStateError(workflowId, state);
  // On Temporal server 1.32.0, every update ends a start delay, even a rejected update. The message would be sent now.
  if (startsAt !== null)
    throw updateRejectedError(workflowId, `the follow-up has not started; it starts at ${startsAt}`);
  const workers = (await listPollingWorkers(client, taskQueue))?.length ?? null;
  const limitMs = workers === 0 ? NO_WORKER_TIMEOUT_MS : UPDATE_TIMEOUT_MS;
  try {
    const handle = client.workflow.getHandle(workflowId);
    const options = { args: args(target) as [unknown, ...unknown[]] };
    return await withTimeout(client, limitMs, () => handle.executeUpdate(name, options));
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError)
      throw updateRejectedError(workflowId, error.cause?.message ?? error.message);
    const { status, text = '' } = findGrpcError(error) ?? {};
    // The Temporal server rejects an update after 2,000 updates in one run, or if the worker that processed the update died.
    const isRejected = status === 'FAILED_PRECONDITION';
    if (isRejected && /\blimit\b/i.test(text)) throw updateRejectedError(workflowId, text);
    if (isRejected || error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)
      throw waitTimeoutError({ workflowId }, limitMs, explainMissingResponse(taskQueue, workers));
    throw error instanceof WorkflowNotFoundError ? wrongStateError(workflowId, (await find()).state) : error;
  }
}
