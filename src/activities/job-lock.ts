import { Context } from '@temporalio/activity';
import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { type FollowUpActivities, type JobAddress } from '../contract/activities';
import { isJobLockHolder, type JobLockHolder } from '../contract/send-result';
import { jobLockWorkflowId } from '../contract/ids';
import { JOB_LOCK_WORKFLOW, MEMO_JOB_LOCK_HOLDER } from '../contract/names';
import {
  describeWorkflow,
  getFirstRunId,
  ignoreClosedWorkflow,
  toRunState,
} from '../temporal/workflow-executions';
import { undecodedClient } from '../temporal/visibility';
import { pollAgainError } from './attempt';

/**
 * The interval between two attempts of the activity. The interval does not grow, because otherwise a new follow-up would overtake
 * the follow-ups that wait longest.
 */
const RETRY_MS = 10_000;

/** The maximum number of starts in one attempt, because another follow-up can acquire the lock in between. */
const MAX_STARTS = 5;

/**
 * The start delay of a lock's workflow. The delay is this long, so that no worker ever runs the workflow. A lock ends when its
 * follow-up releases it or the next follow-up acquires it.
 */
const START_DELAY = '365 days';

export type JobLockAttempt =
  | { readonly kind: 'acquired'; readonly lockRunId: string }
  | { readonly kind: 'held'; readonly holder: JobLockHolder };

/**
 * Acquires the lock of a job by starting the workflow whose ID is the lock. A free lock needs one request. If the lock's workflow
 * is running, but its holder has ended, the lock's workflow is terminated. The termination names the lock's run ID, so that a
 * later lock is never terminated by mistake.
 */
export async function acquireJobLock(
  client: Client,
  { projectId, jobId }: JobAddress,
  ownHolder: JobLockHolder,
  taskQueue: string,
): Promise<JobLockAttempt> {
  const workflowId = jobLockWorkflowId(projectId, jobId);
  for (let starts = 0; starts < MAX_STARTS; starts += 1) {
    try {
      const handle = await client.workflow.start(JOB_LOCK_WORKFLOW, {
        workflowId,
        taskQueue,
        startDelay: START_DELAY,
        memo: { [MEMO_JOB_LOCK_HOLDER]: ownHolder },
        workflowIdConflictPolicy: 'FAIL',
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
        staticSummary: 'Lock of a job: one follow-up at a time',
      });
      return { kind: 'acquired', lockRunId: handle.firstExecutionRunId };
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
    const lock = await describeWorkflow(client, workflowId);
    if (lock === null || toRunState(lock.status.name) !== 'running') continue;
    const holder = lock.memo?.[MEMO_JOB_LOCK_HOLDER];
    // Another client started a workflow with this ID. This workflow holds the lock until it ends.
    if (!isJobLockHolder(holder))
      return { kind: 'held', holder: { workflowId, firstRunId: getFirstRunId(lock) } };
    // An earlier attempt or the run before a reset has acquired the lock.
    if (holder.firstRunId === ownHolder.firstRunId) return { kind: 'acquired', lockRunId: lock.runId };
    if (await isRunning(client, holder)) return { kind: 'held', holder };
    await client.workflow
      .getHandle(workflowId, lock.runId)
      .terminate('its follow-up has ended')
      .catch(ignoreClosedWorkflow);
  }
  return { kind: 'held', holder: { workflowId, firstRunId: '' } };
}

export const waitForJobLock: FollowUpActivities['waitForJobLock'] = async (job, ownHolder) => {
  const { client, info } = Context.current();
  const lock = await acquireJobLock(client, job, ownHolder, info.taskQueue);
  if (lock.kind === 'acquired') return lock.lockRunId;
  throw pollAgainError(RETRY_MS, `waiting for the job lock, which ${lock.holder.workflowId} holds`);
};

export const releaseJobLock: FollowUpActivities['releaseJobLock'] = async (job, ownHolder, lockRunId) => {
  const { client } = Context.current();
  const workflowId = jobLockWorkflowId(job.projectId, job.jobId);
  let runId = lockRunId;
  if (runId === null) {
    const lock = await describeWorkflow(client, workflowId);
    const holder = lock?.memo?.[MEMO_JOB_LOCK_HOLDER];
    if (lock === null || !isJobLockHolder(holder) || holder.firstRunId !== ownHolder.firstRunId) return;
    ({ runId } = lock);
  }
  await client.workflow
    .getHandle(workflowId, runId)
    .terminate('its follow-up has ended')
    .catch(ignoreClosedWorkflow);
};

/** Returns whether a follow-up has an open run: its first run, a run that continues it, or a run that a reset made. */
async function isRunning(client: Client, { workflowId, firstRunId }: JobLockHolder): Promise<boolean> {
  // The memo of the follow-up may be encoded with a codec that this worker does not have.
  const found = await describeWorkflow(undecodedClient(client), workflowId);
  return found !== null && toRunState(found.status.name) === 'running' && getFirstRunId(found) === firstRunId;
}
