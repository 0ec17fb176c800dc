import { isDeepStrictEqual } from 'node:util';
import {
  type Client,
  QueryNotRegisteredError,
  QueryRejectedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { readsBeforeAttempt } from '../contract/activities';
import { isRecord } from '../contract/checks';
import { QUERY_PROGRESS } from '../contract/names';
import type { Delivery, FollowUpProgress } from '../contract/result';
import { singleLine } from '../contract/text';
import { addCounts } from '../contract/response-counts';
import { grpcError } from '../temporal/grpc-status';
import { optionalTsToDate, pendingActivity, workersPolling } from '../temporal/sdk-internals';
import { SERVER_LIMIT_MS, within, WORKER_LIMIT_MS } from './call';
import {
  describeFollowUp,
  findFollowUp,
  type FollowUpDescription,
  hasRecordedPermission,
} from './description';
import { noAnswer, silence, updateRefused, wrongState } from './errors';

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
    if (!isOfServer(error)) throw error;
    const description = await within(client, SERVER_LIMIT_MS, () => describeFollowUp(client, workflowId));
    const workers = await workersPolling(client, description.taskQueue);
    return { from: 'server', description, workers: workers.length };
  }
}

/** Anything else is a bug, or a data converter that can't read the answer. */
function isOfServer(error: unknown): boolean {
  const others = [WorkflowNotFoundError, QueryNotRegisteredError, QueryRejectedError];
  return grpcError(error) !== undefined || others.some((each) => error instanceof each);
}

function queryProgress(client: Client, workflowId: string): Promise<FollowUpProgress> {
  const handle = client.workflow.getHandle(workflowId);
  return within(client, WORKER_LIMIT_MS, () => handle.query<FollowUpProgress>(QUERY_PROGRESS));
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
    if (isDeepStrictEqual(later, progress)) return wholeProgress(progress, pending);
    progress = later;
  }
  return wholeProgress(progress, undefined);
}

/** Whether an activity is pending that knows more than the workflow. */
function isActivityExpected({ deliveryBeforeSend, nextPollAt }: FollowUpProgress): boolean {
  // While an activity polls, the time of the next read that the workflow knows has passed.
  return deliveryBeforeSend !== undefined || (nextPollAt !== null && Date.parse(nextPollAt) <= Date.now());
}

async function describePending(client: Client, workflowId: string, progress: FollowUpProgress) {
  const handle = client.workflow.getHandle(workflowId);
  const description = await within(client, SERVER_LIMIT_MS, () => handle.describe());
  const type = progress.deliveryBeforeSend === undefined ? 'pollJob' : 'sendMessage';
  return pendingActivity(client, description, type);
}

/** @param pending undefined if nothing is known of a pending activity: a send in progress is then reported as `unknown` */
function wholeProgress(
  { deliveryBeforeSend, ...progress }: FollowUpProgress,
  pending: Pending | undefined,
): FollowUpProgress {
  if (pending === undefined) return progress;
  return deliveryBeforeSend === undefined
    ? withPendingPoll(progress, pending)
    : withPendingSend(progress, pending, deliveryBeforeSend);
}

type Pending = NonNullable<Awaited<ReturnType<typeof pendingActivity>>>;

function withPendingSend(progress: FollowUpProgress, pending: Pending, before: Delivery): FollowUpProgress {
  const failure = pending.lastFailure?.message;
  const lastResponse = failure
    ? `the send fails, and is tried again: ${singleLine(failure, 300)}`
    : pending.isStarted
      ? 'a worker is sending the message'
      : 'the send waits for a worker; if it keeps waiting, none polls the task queue for sends, or a rate limit delays it';
  if (hasRecordedPermission(pending)) return { ...progress, lastResponse };
  const deliveryUnknownReason = before.verdict === 'unknown' ? progress.deliveryUnknownReason : undefined;
  return { ...progress, delivery: before, deliveryUnknownReason, lastResponse };
}

/** The reads of a pending poll returned the job as the workflow knows it. */
function withPendingPoll(progress: FollowUpProgress, pending: Pending): FollowUpProgress {
  const nextPollAt = nextAttemptAt(pending);
  const reads = readsBeforeAttempt(pending.attempt ?? 1);
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

type Found = Pick<FollowUpDescription, 'workflowId' | 'taskQueue' | 'state' | 'runId'> & {
  readonly beginsAt?: string | null;
};

export interface Update {
  readonly name: string;
  readonly args?: (found: Found) => readonly unknown[];
}

/** @returns the progress after the update @throws as {@link updateRunning} */
export async function updateFollowUp(
  client: Client,
  workflowId: string,
  update: Update,
): Promise<FollowUpProgress> {
  const find = () => describeFollowUp(client, workflowId);
  const progress = await updateRunning<FollowUpProgress>(client, find, update);
  // The update has taken effect, whether the server answers or not.
  const whole = await withPendingActivity(client, workflowId, progress).catch(() =>
    wholeProgress(progress, undefined),
  );
  // A caller who requested a read gets its response, and not the pending activity's latest one.
  return { ...whole, lastResponse: progress.lastResponse };
}

/** Some wait for a read of the job: the default limit of one HTTP exchange, 30 s, and some room. */
const UPDATE_LIMIT_MS = 45_000;

/** One may just be starting. */
const NO_WORKER_LIMIT_MS = 2_000;

/** @throws WaitTimeoutError; FollowUpError `ALREADY_ENDED`, `UPDATE_REJECTED`; and what `find` throws */
export async function updateRunning<Answer>(
  client: Client,
  find: () => Promise<Found>,
  { name, args = () => [] }: Update,
): Promise<Answer> {
  const found = await find();
  const { workflowId, taskQueue, state, beginsAt = null } = found;
  if (state !== 'running') throw wrongState(workflowId, state);
  // An update ends a start delay, also one that is refused (measured, server 1.32.0): the message would be sent now.
  if (beginsAt !== null) throw updateRefused(workflowId, `it has not begun; it begins at ${beginsAt}`);
  const workers = (await workersPolling(client, taskQueue)).length;
  const limitMs = workers === 0 ? NO_WORKER_LIMIT_MS : UPDATE_LIMIT_MS;
  try {
    const handle = client.workflow.getHandle(workflowId);
    const options = { args: args(found) as [unknown, ...unknown[]] };
    return await within(client, limitMs, () => handle.executeUpdate(name, options));
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError)
      throw updateRefused(workflowId, error.cause?.message ?? error.message);
    const { status, words = '' } = grpcError(error) ?? {};
    // The server takes 2,000 updates in a run. Else the worker that had the update in its task has died.
    const isRefused = status === 'FAILED_PRECONDITION';
    if (isRefused && /\blimit\b/i.test(words)) throw updateRefused(workflowId, words);
    if (isRefused || error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)
      throw noAnswer({ workflowId }, limitMs, silence(taskQueue, workers));
    throw error instanceof WorkflowNotFoundError ? wrongState(workflowId, (await find()).state) : error;
  }
}
