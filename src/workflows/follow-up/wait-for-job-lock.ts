import { ActivityFailure, workflowInfo } from '@temporalio/workflow';
import type { FollowUpEvent } from '../../follow-up/apply';
import type { FollowUpState } from '../../follow-up/state';
import { releaseJobLock, serverCallProxy } from '../activity-proxies';
import { StoppableActivity } from '../stoppable-activity';
import type { FollowUpRun } from './run';

/**
 * Waits for the job lock, which another follow-up holds. If the activity ends without a result, it is not known whether the lock
 * was acquired. The next send then acquires the lock, or finds that it holds the lock already.
 */
export async function performLockWait(run: FollowUpRun): Promise<FollowUpEvent> {
  const { job, holder } = toLockRequest(run.state);
  const wait = new StoppableActivity<string | null>(run, () =>
    serverCallProxy('wait for the job lock')
      .waitForJobLock(job, holder)
      .then((lockRunId: unknown) => (typeof lockRunId === 'string' ? lockRunId : null))
      .catch((error: unknown) => {
        if (!(error instanceof ActivityFailure)) throw error;
        return null;
      }),
  );
  await wait.waitForEndOrDeadline();
  const lockRunId = wait.outcome === undefined ? await wait.stop() : wait.outcome;
  return { kind: 'lock wait ended', lockRunId: lockRunId ?? null };
}

/** Releases the job lock before the follow-up ends. If the release fails, the next follow-up to the job terminates the lock. */
export async function releaseLock(state: FollowUpState): Promise<void> {
  if (state.jobLock === null) return;
  const { job, holder } = toLockRequest(state);
  await releaseJobLock(job, holder, state.jobLock.runId);
}

function toLockRequest({ plan, firstRunId }: FollowUpState) {
  const { projectId, jobId } = plan;
  return { job: { projectId, jobId }, holder: { workflowId: workflowInfo().workflowId, firstRunId } };
}
