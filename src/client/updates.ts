import type { Client } from '@temporalio/client';
import { UPDATE_POLL_NOW } from '../contract/names';
import type { FollowUpProgress } from '../contract/progress';
import { describeFollowUp } from './description';
import { FollowUpEndedError } from './errors';
import { executeUpdate } from './execute-update';
import { mayBePolling, withPendingPoll } from './pending-poll';

/**
 * Asks a running follow-up to do something, and answers with its progress after it.
 *
 * @throws FollowUpNotFoundError, FollowUpEndedError, UpdateRefusedError, NoAnswerError
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
  // An update to a workflow that is none of ours could mean something else to it.
  const { state, taskQueue, runId } = await describeFollowUp(client, workflowId);
  if (state !== 'running') throw new FollowUpEndedError(workflowId, state);
  const progress = await executeUpdate<FollowUpProgress>(client, {
    workflowId,
    taskQueue,
    name: update.name,
    args: update.args?.(runId) ?? [],
    timeoutMs: update.timeoutMs,
    ended: async () => new FollowUpEndedError(workflowId, (await describeFollowUp(client, workflowId)).state),
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
  // Who has the job read now is told of that read, and not of the pending one's latest.
  return updateName === UPDATE_POLL_NOW ? { ...whole, lastAnswer: progress.lastAnswer } : whole;
}
