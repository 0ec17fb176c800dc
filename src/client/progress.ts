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
import { optionalTsToDate, findPendingActivity, listPollingWorkers } from '../temporal/sdk-internals';
import { SERVER_TIMEOUT_MS, withTimeout, WORKER_TIMEOUT_MS } from './call-runner';
import {
  describeFollowUp,
  findFollowUp,
  type FollowUpDescription,
  hasRecordedPermission,
} from './description';
import { waitTimeoutError, explainMissingResponse, updateRejectedError, wrongStateError } from './errors';

/** Where a follow-up stands. */
export type ProgressReport =
  | { readonly from: 'worker'; readonly progress: FollowUpProgress }
  | {
      /** No worker answered within 3 s; this is what the server knows. */
      readonly from: 'server';
      readonly description: FollowUpDescription;
      /** How many poll its task queue. */
      readonly workers: number;
    };

/** A follow-up that polls every 100 ms could change between any two requests. */
const MAX_QUERIES = 3;

/** Returns the progress from the worker, with what the Temporal server knows of the pending activity. */
export async function readProgress(client: Client, workflowId: string): Promise<ProgressReport> {
  try {
    const progress = await queryProgress(client, workflowId);
    // A batch has a query of this name too.
    if (!isRecord(progress) || !('phase' in progress)) await findFollowUp(client, workflowId);
    return { from: 'worker', progress: await withPendingActivity(client, workflowId, progress) };
  } catch (error) {
    // The Temporal server may know more, and throws if there is no follow-up.
    if (!isServerFailure(error)) throw error;
    const description = await withTimeout(client, SERVER_TIMEOUT_MS, () =>
      describeFollowUp(client, workflowId),
    );
    const workers = await listPollingWorkers(client, description.taskQueue);
    return { from: 'server', description, workers: workers.length };
  }
}

/** Anything else is a bug, or a data converter that can't read the answer. */
function isServerFailure(error: unknown): boolean {
  const others = [WorkflowNotFoundError, QueryNotRegisteredError, QueryRejectedError];
  return findGrpcError(error) !== undefined || others.some((each) => error instanceof each);
}

function queryProgress(client: Client, workflowId: string): Promise<FollowUpProgress> {
  const handle = client.workflow.getHandle(workflowId);
  return withTimeout(client, WORKER_TIMEOUT_MS, () => handle.query<FollowUpProgress>(QUERY_PROGRESS));
}

/**
 * Adds what the Temporal server knows of the pending send or poll. The workflow reports a send in progress as `unknown`; if the
 * server has recorded no send permission, nothing was sent yet.
 *
 * The pending activity belongs to the progress only if the workflow reports the same progress before and after. Otherwise, a later
 * send without a permission could be mistaken for an earlier one, and its delivery for the one before both.
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

/** Whether an activity is pending that knows more than the workflow. */
function isActivityExpected({ deliveryBeforeSend, nextPollAt }: FollowUpProgress): boolean {
  // While an activity polls, the time of the next read that the workflow knows has passed.
  return deliveryBeforeSend !== undefined || (nextPollAt !== null && Date.parse(nextPollAt) <= Date.now());
}

async function describePending(client: Client, workflowId: string, progress: FollowUpProgress) {
  const handle = client.workflow.getHandle(workflowId);
  const description = await withTimeout(client, SERVER_TIMEOUT_MS, () => handle.describe());
  const type = progress.deliveryBeforeSend === undefined ? 'pollJob' : 'sendMessage';
  return findPendingActivity(client, description, type);
}

/** @param pending undefined if nothing is known of a pending activity: a send in progress is then reported as `unknown` */
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
    ? `the send fails, and is tried again: ${singleLine(failure, 300)}`
    : pending.isStarted
      ? 'a worker is sending the message'
      : 'the send waits for a worker; if it keeps waiting, none polls the task queue for sends, or a rate limit delays it';
  if (hasRecordedPermission(pending)) return { ...progress, lastResponse };
  const deliveryUnknownReason =
    deliveryBefore.verdict === 'unknown' ? progress.deliveryUnknownReason : undefined;
  return { ...progress, delivery: deliveryBefore, deliveryUnknownReason, lastResponse };
}

/** The reads of a pending poll returned the job as the workflow knows it. */
function withPendingPoll(progress: FollowUpProgress, pending: Pending): FollowUpProgress {
  const nextPollAt = nextAttemptAt(pending);
  const reads = countReadsBeforeAttempt(pending.attempt ?? 1);
  // A read before the send is not a poll, and no receipt counts it.
  if (progress.delivery.verdict === 'not-sent' || reads === 0 || progress.job === null)
    return { ...progress, nextPollAt };
  const responseCounts = addCounts(progress.responseCounts, { [progress.job.status]: reads });
  return { ...progress, nextPollAt, polls: progress.polls + reads, responseCounts };
}

/** Null while an operator has paused the activity, and while it reads. */
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
  readonly args?: (found: UpdateTarget) => readonly unknown[];
}

/** @returns the progress after the update @throws as {@link updateRunning} */
export async function updateFollowUp(
  client: Client,
  workflowId: string,
  update: WorkflowUpdate,
): Promise<FollowUpProgress> {
  const find = () => describeFollowUp(client, workflowId);
  const progress = await updateRunning<FollowUpProgress>(client, find, update);
  // The update has taken effect, whether the server answers or not.
  const completeProgress = await withPendingActivity(client, workflowId, progress).catch(() =>
    toCompleteProgress(progress, undefined),
  );
  // A caller who requested a read gets its response, and not the pending activity's latest one.
  return { ...completeProgress, lastResponse: progress.lastResponse };
}

/** Some wait for a read of the job: the default limit of one HTTP exchange, 30 s, and some room. */
const UPDATE_TIMEOUT_MS = 45_000;

/** One may just be starting. */
const NO_WORKER_TIMEOUT_MS = 2_000;

/** @throws WaitTimeoutError; FollowUpError `ALREADY_ENDED`, `UPDATE_REJECTED`; and what `find` throws */
export async function updateRunning<Result>(
  client: Client,
  find: () => Promise<UpdateTarget>,
  { name, args = () => [] }: WorkflowUpdate,
): Promise<Result> {
  const target = await find();
  const { workflowId, taskQueue, state, startsAt = null } = target;
  if (state !== 'running') throw wrongStateError(workflowId, state);
  // An update ends a start delay, also one that is refused (measured, server 1.32.0): the message would be sent now.
  if (startsAt !== null) throw updateRejectedError(workflowId, `it has not begun; it begins at ${startsAt}`);
  const workers = (await listPollingWorkers(client, taskQueue)).length;
  const limitMs = workers === 0 ? NO_WORKER_TIMEOUT_MS : UPDATE_TIMEOUT_MS;
  try {
    const handle = client.workflow.getHandle(workflowId);
    const options = { args: args(target) as [unknown, ...unknown[]] };
    return await withTimeout(client, limitMs, () => handle.executeUpdate(name, options));
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError)
      throw updateRejectedError(workflowId, error.cause?.message ?? error.message);
    const { status, text = '' } = findGrpcError(error) ?? {};
    // The server takes 2,000 updates in a run. Else the worker that had the update in its task has died.
    const isRejected = status === 'FAILED_PRECONDITION';
    if (isRejected && /\blimit\b/i.test(text)) throw updateRejectedError(workflowId, text);
    if (isRejected || error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)
      throw waitTimeoutError({ workflowId }, limitMs, explainMissingResponse(taskQueue, workers));
    throw error instanceof WorkflowNotFoundError ? wrongStateError(workflowId, (await find()).state) : error;
  }
}
