import { Context } from '@temporalio/activity';
import { type Client, WorkflowClient, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import {
  type FollowUpActivities,
  isJobLockHolder,
  type JobAddress,
  type JobLockHolder,
} from '../contract/activities';
import { jobLockWorkflowId } from '../contract/ids';
import { JOB_LOCK_WORKFLOW, MEMO_JOB_LOCK_HOLDER } from '../contract/names';
import {
  describeWorkflow,
  getFirstRunId,
  ignoreClosedWorkflow,
  toRunState,
} from '../temporal/workflow-executions';
import { undecodedClientOptions } from '../temporal/visibility';
import { pollAgainError } from './attempt';

/** The same interval for every waiting follow-up: with growing intervals, the newest one would be the fastest. */
const RETRY_MS = 10_000;

const MAX_TRIES = 5;

/** No worker runs a lock: it ends when its follow-up releases it, or when the next follow-up acquires it. */
const START_DELAY = '365 days';

export type JobLockAttempt =
  | { readonly kind: 'acquired'; readonly lockRunId: string }
  | { readonly kind: 'held'; readonly holder: JobLockHolder };

/**
 * Acquires the lock of a job with one request: it starts the workflow whose ID is the lock. If the holder of an open lock has
 * ended, that lock is terminated by its run ID, so that no later lock is terminated by mistake.
 */
export async function acquireJobLock(
  client: Client,
  { projectId, jobId }: JobAddress,
  ownHolder: JobLockHolder,
  taskQueue: string,
): Promise<JobLockAttempt> {
  const workflowId = jobLockWorkflowId(projectId, jobId);
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
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
    // Another client started a workflow with this ID: it holds the lock until it ends.
    if (!isJobLockHolder(holder))
      return { kind: 'held', holder: { workflowId, firstRunId: getFirstRunId(lock) } };
    // An earlier attempt, or the run before a reset, has acquired it.
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

/** Whether a follow-up has an open run: its first one, or one that continues it or that a reset made. */
async function isRunning(client: Client, { workflowId, firstRunId }: JobLockHolder): Promise<boolean> {
  // The memo of the follow-up may be encoded with a codec that this worker does not have.
  const undecoded = new WorkflowClient(undecodedClientOptions(client));
  const found = await describeWorkflow({ workflow: undecoded }, workflowId);
  return found !== null && toRunState(found.status.name) === 'running' && getFirstRunId(found) === firstRunId;
}
