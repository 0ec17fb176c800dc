import {
  type Client,
  QueryNotRegisteredError,
  QueryRejectedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { isRecord } from '../core/checks';
import { QUERY_PROGRESS } from '../core/names';
import type { FollowUpProgress, Phase } from '../core/result';
import { addCounts } from '../core/tally';
import { isTally } from '../core/activities';
import { grpcError } from '../temporal/grpc-status';
import { optionalTsToDate, pendingActivity, workersPolling } from '../temporal/sdk-internals';
import { SERVER_LIMIT_MS, within, WORKER_LIMIT_MS } from './call';
import { describeFollowUp, findFollowUp, type FollowUpDescription } from './description';
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

/** By the worker and, while an activity polls, by the heartbeats of that. */
export async function readProgress(client: Client, workflowId: string): Promise<ProgressReport> {
  try {
    let progress = await queryProgress(client, workflowId);
    // A batch has a query of this name too.
    if (!isRecord(progress) || !('phase' in progress)) await findFollowUp(client, workflowId);
    for (;;) {
      const whole = await withPendingPoll(client, workflowId, progress);
      if (whole === undefined) return { from: 'worker', progress };
      const later = await queryProgress(client, workflowId);
      // If the workflow has counted more, the activity has ended in between, and another one is pending.
      if (later.polls === progress.polls) return { from: 'worker', progress: whole };
      progress = later;
    }
  } catch (error) {
    // The server may know more, and throws where there is no follow-up.
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

const POLLING_PHASES: readonly Phase[] = ['waiting', 'watching', 'needs-decision'];

/**
 * The progress with what a pending activity has counted. Nothing is counted twice: what is pending after the workflow has
 * answered was not in that answer. If the workflow counts no more afterwards, nothing is missing.
 *
 * @returns undefined where none can be pending
 */
async function withPendingPoll(
  client: Client,
  workflowId: string,
  progress: FollowUpProgress,
): Promise<FollowUpProgress | undefined> {
  const { phase, nextPollAt: planned } = progress;
  // While an activity polls, the next read that the workflow knows of has passed.
  const isPlanned = planned !== null && Date.parse(planned) > Date.now();
  if (isPlanned || !POLLING_PHASES.includes(phase)) return undefined;
  const handle = client.workflow.getHandle(workflowId);
  const description = await within(client, SERVER_LIMIT_MS, () => handle.describe());
  const pending = await pendingActivity(client, description, 'pollJob');
  if (pending === undefined) return progress;
  const counted = isTally(pending.details) ? pending.details : null;
  const nextPollAt = nextReadAt(pending, counted?.nextReadAt ?? 0);
  const whole = { ...progress, nextPollAt, lastAnswer: counted?.lastAnswer ?? progress.lastAnswer };
  // A read before the send is not a poll, and no receipt counts it.
  if (counted === null || phase === 'waiting') return whole;
  const polls = progress.polls + counted.polls;
  return { ...whole, polls, observed: addCounts(progress.observed, counted.observed) };
}

type Pending = NonNullable<Awaited<ReturnType<typeof pendingActivity>>>;

/** Null while an operator has paused it, and while it reads. @param readAt by the latest heartbeat */
function nextReadAt(pending: Pending, readAt: number): string | null {
  const { paused, isStarted, nextAttemptScheduleTime, scheduledTime } = pending;
  if (paused === true) return null;
  // It has passed where an attempt waits for a worker.
  if (!isStarted) return optionalTsToDate(nextAttemptScheduleTime ?? scheduledTime)?.toISOString() ?? null;
  return readAt > Date.now() ? new Date(readAt).toISOString() : null;
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
  const whole = (await withPendingPoll(client, workflowId, progress).catch(() => undefined)) ?? progress;
  // Whoever has had the job read gets that answer, not the pending activity's latest.
  return { ...whole, lastAnswer: progress.lastAnswer };
}

/** Some wait for a read of the job: the default limit of one HTTP exchange, 30 s, and some room. */
const UPDATE_LIMIT_MS = 45_000;

/** One may just be starting. */
const NO_WORKER_LIMIT_MS = 2_000;

/** @throws NoAnswerError; FollowUpError `ALREADY_ENDED`, `UPDATE_REFUSED`; and what `find` throws */
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
