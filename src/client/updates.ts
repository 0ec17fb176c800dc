import {
  type Client,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { UPDATE_POLL_NOW } from '../core/names';
import type { FollowUpProgress } from '../core/result';
import { workersPolling } from '../temporal/sdk-internals';
import { describeFollowUp } from './description';
import { mayBePolling, withPendingPoll } from './progress';
import { followUpEnded, NoAnswerError, updateRefused } from './errors';

/**
 * Asks a running follow-up to do something, and answers with its progress after it.
 *
 * @throws NotFoundError, FollowUpError, FollowUpError, NoAnswerError
 */
export async function updateFollowUp(
  client: Client,
  workflowId: string,
  update: {
    readonly name: string;
    /** @param runId the run that is running */
    readonly args?: (runId: string) => readonly unknown[];
    readonly timeoutMs: number;
  },
): Promise<FollowUpProgress> {
  // An update could mean something else to a workflow that is not a follow-up.
  const { state, taskQueue, runId } = await describeFollowUp(client, workflowId);
  if (state !== 'running') throw followUpEnded(workflowId, state);
  const progress = await executeUpdate<FollowUpProgress>(client, {
    workflowId,
    taskQueue,
    name: update.name,
    args: update.args?.(runId) ?? [],
    timeoutMs: update.timeoutMs,
    ended: async () => followUpEnded(workflowId, (await describeFollowUp(client, workflowId)).state),
  });
  return wholeProgress(client, workflowId, update.name, progress);
}

/**
 * The answer of an update with what a pending activity that polls on has counted. The update has taken
 * effect: where the server does not tell, the answer stands as it is, and nothing must look as if it had failed.
 */
async function wholeProgress(
  client: Client,
  workflowId: string,
  updateName: string,
  progress: FollowUpProgress,
): Promise<FollowUpProgress> {
  if (!mayBePolling(progress)) return progress;
  const whole = await withPendingPoll(client, workflowId, progress).catch(() => undefined);
  if (whole === undefined) return progress;
  // Whoever has the job read now gets the answer of that read, not the pending activity's latest.
  return updateName === UPDATE_POLL_NOW ? { ...whole, lastAnswer: progress.lastAnswer } : whole;
}

/** How long the server may take to tell which workers poll a queue. */
const WORKERS_TIMEOUT_MS = 5_000;

/** Without a worker, waiting is useful only if one is just starting. */
const NO_WORKER_TIMEOUT_MS = 2_000;

/** An update of a workflow that was running a moment ago. */
interface UpdateOfRunning {
  readonly workflowId: string;
  readonly taskQueue: string;
  readonly name: string;
  readonly args: readonly unknown[];
  readonly timeoutMs: number;
  /** The error where it has ended in the meantime. */
  readonly ended: () => Promise<Error>;
}

/**
 * Executes an update and answers with what the workflow says.
 *
 * @throws FollowUpError, NoAnswerError, and the error of `ended`
 */
export async function executeUpdate<T>(client: Client, update: UpdateOfRunning): Promise<T> {
  const { workflowId, taskQueue, name, args } = update;
  const workers = await workersPolling(client, taskQueue, WORKERS_TIMEOUT_MS);
  const timeoutMs =
    workers.length === 0 ? Math.min(update.timeoutMs, NO_WORKER_TIMEOUT_MS) : update.timeoutMs;
  try {
    const handle = client.workflow.getHandle(workflowId);
    return await client.withDeadline(Date.now() + timeoutMs, () =>
      handle.executeUpdate<T, [unknown, ...unknown[]]>(name, { args: args as [unknown, ...unknown[]] }),
    );
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError) {
      throw updateRefused(workflowId, error.cause?.message ?? error.message);
    }
    if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) {
      throw new NoAnswerError(workflowId, taskQueue, workers.length, timeoutMs);
    }
    if (error instanceof WorkflowNotFoundError) throw await update.ended();
    throw error;
  }
}
