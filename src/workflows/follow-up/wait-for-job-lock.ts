import { ActivityFailure, workflowInfo } from '@temporalio/workflow';
import type { FollowUpEvent } from '../../follow-up/apply';
import type { FollowUpState } from '../../follow-up/state';
import { releaseJobLock, serverCallProxy } from '../activity-proxies';
import { StoppableActivity } from '../stoppable-activity';
import type { FollowUpRun } from './run';

/**
 * Waits for the job lock, which another follow-up holds. If the wait ends without an answer, it is not known whether the lock was
 * acquired: the next send finds out.
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

/** Releases the job lock in the follow-up's last workflow task. A lock that stays is acquired by the next follow-up. */
export async function releaseLock(state: FollowUpState): Promise<void> {
  if (state.jobLock === null) return;
  const { job, holder } = toLockRequest(state);
  await releaseJobLock(job, holder, state.jobLock.runId);
}

function toLockRequest({ plan, firstRunId }: FollowUpState) {
  const { projectId, jobId } = plan;
  return { job: { projectId, jobId }, holder: { workflowId: workflowInfo().workflowId, firstRunId } };
}
