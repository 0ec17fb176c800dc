import {
  type Client,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import type { FollowUpProgress } from '../contract/progress';
import { describeFollowUp } from './description';
import { FollowUpEndedError, NoAnswerError, UpdateRefusedError } from './errors';
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
    return await client.withDeadline(Date.now() + timeoutMs, () =>
      update.arg === undefined
        ? handle.executeUpdate<FollowUpProgress, []>(update.name)
        : handle.executeUpdate<FollowUpProgress, [string]>(update.name, { args: [update.arg] }),
    );
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
