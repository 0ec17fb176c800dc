import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { QUERY_PROGRESS } from '../contract/names';
import type { FollowUpProgress } from '../contract/progress';
import { describeFollowUp, type FollowUpDescription } from './description';
import { FollowUpNotFoundError } from './errors';
import { mayBePolling, withPendingPoll } from './pending-poll';
import { workersPolling } from './workers';

/** Who tells where a follow-up stands. */
export type ProgressReport =
  | { readonly from: 'worker'; readonly progress: FollowUpProgress }
  | {
      /** No worker answered in time; this is what the server knows. */
      readonly from: 'server';
      readonly description: FollowUpDescription;
      /** Workers that poll the task queue of the follow-up. With none, the follow-up waits; nothing is lost. */
      readonly workers: number;
    };

/** A worker answers a query within milliseconds; one that has to replay a long history first, within a second. */
export const QUERY_TIMEOUT_MS = 3_000;

/** The server's own answers need no worker. */
const CALL_TIMEOUT_MS = 5_000;

/**
 * Where a follow-up stands: by its worker and, while an activity polls on, by what the server knows of
 * that; by the server alone when no worker answers in time.
 *
 * @param timeoutMs how long a worker is waited for
 * @throws FollowUpNotFoundError; ServiceError when the server does not answer either
 */
export async function readProgress(
  client: Client,
  workflowId: string,
  timeoutMs: number,
): Promise<ProgressReport> {
  try {
    return { from: 'worker', progress: await askWorker(client, workflowId, timeoutMs) };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) {
      throw new FollowUpNotFoundError(workflowId, client.options.namespace);
    }
    // Whatever else it is (no worker, a busy one, one without this query), the server may still know something; when
    // it does not answer either, its error is thrown from here.
    const description = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
      describeFollowUp(client, workflowId),
    );
    const workers = await workersPolling(client, description.taskQueue, CALL_TIMEOUT_MS);
    return { from: 'server', description, workers: workers.length };
  }
}

/** An activity that polls on may end between the two questions; it is then asked once more. */
const MAX_QUESTIONS = 2;

/** The worker's answer, with what a pending activity that polls on has counted so far. */
async function askWorker(client: Client, workflowId: string, timeoutMs: number): Promise<FollowUpProgress> {
  for (let question = 1; ; question += 1) {
    const progress = await client.withDeadline(Date.now() + timeoutMs, () =>
      client.workflow.getHandle(workflowId).query<FollowUpProgress>(QUERY_PROGRESS),
    );
    if (!mayBePolling(progress)) return progress;
    const whole = await withPendingPoll(client, workflowId, progress);
    if (whole !== undefined) return whole;
    if (question === MAX_QUESTIONS) return progress;
  }
}
