import {
  type Client,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { UPDATE_POLL_NOW } from '../contract/names';
import type { FollowUpProgress } from '../contract/progress';
import { describeFollowUp } from './description';
import { FollowUpEndedError, NoAnswerError, UpdateRefusedError } from './errors';
import { mayBeReadPatiently, withPatientRead } from './patient-read';
import { workersPolling } from './workers';

const CALL_TIMEOUT_MS = 5_000;

/** With no worker there is nobody to wait for, unless one is just starting. */
const NO_WORKER_TIMEOUT_MS = 2_000;

/**
 * Asks a running follow-up to do something, and answers with its progress after it.
 *
 * @throws FollowUpNotFoundError, FollowUpEndedError, UpdateRefusedError, NoAnswerError
 */
export async function updateFollowUp(
  client: Client,
  workflowId: string,
  update: { readonly name: string; readonly arg?: string; readonly timeoutMs: number },
): Promise<FollowUpProgress> {
  // An update to a workflow that is none of ours could mean something else to it.
  const { state, taskQueue } = await describeFollowUp(client, workflowId);
  if (state !== 'running') throw new FollowUpEndedError(workflowId, state);
  const workers = await workersPolling(client, taskQueue, CALL_TIMEOUT_MS);
  const timeoutMs =
    workers.length === 0 ? Math.min(update.timeoutMs, NO_WORKER_TIMEOUT_MS) : update.timeoutMs;
  try {
    const handle = client.workflow.getHandle(workflowId);
    const progress = await client.withDeadline(Date.now() + timeoutMs, () =>
      update.arg === undefined
        ? handle.executeUpdate<FollowUpProgress, []>(update.name)
        : handle.executeUpdate<FollowUpProgress, [string]>(update.name, { args: [update.arg] }),
    );
    return await wholeProgress(client, workflowId, update.name, progress);
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError) {
      throw new UpdateRefusedError(workflowId, error.cause?.message ?? error.message);
    }
    if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) {
      throw new NoAnswerError(workflowId, taskQueue, workers.length, timeoutMs);
    }
    if (error instanceof WorkflowNotFoundError) {
      throw new FollowUpEndedError(workflowId, (await describeFollowUp(client, workflowId)).state);
    }
    throw error;
  }
}

/**
 * The answer of an update with what a pending read that polls by its own retries has counted. The update has taken
 * effect: where the server does not tell, the answer stands as it is, and nothing must look as if it had failed.
 */
async function wholeProgress(
  client: Client,
  workflowId: string,
  updateName: string,
  progress: FollowUpProgress,
): Promise<FollowUpProgress> {
  if (!mayBeReadPatiently(progress)) return progress;
  const whole = await withPatientRead(client, workflowId, progress).catch(() => undefined);
  if (whole === undefined) return progress;
  // Who has the job read now is told of that read, and not of the pending one's latest.
  return updateName === UPDATE_POLL_NOW ? { ...whole, lastAnswer: progress.lastAnswer } : whole;
}
