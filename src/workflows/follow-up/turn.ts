import { ActivityFailure, workflowInfo } from '@temporalio/workflow';
import type { TurnHolder } from '../../core/activities';
import { CancelledByHand, pendingDetails, questionProxy } from '../activity-proxies';
import type { FollowUpContext } from './context';
import { refuseAfterDeadline } from './failures';
import { endOrDeadline } from './send';

/** A turn that is free is taken in milliseconds. */
const FIRST_QUESTION_MS = 5_000;

/** Waits for the turn at the job, which the follow-up then has until its end. Whoever ends the activity by hand lets it go on. */
export async function takeTurn(context: FollowUpContext): Promise<void> {
  const { state } = context;
  const { projectId, jobId } = state.plan;
  const { workflowId, firstExecutionRunId: firstRunId } = workflowInfo();
  const activity = new CancelledByHand(() =>
    questionProxy('take its turn at the job')
      .takeTurn({ projectId, jobId }, { workflowId, firstRunId })
      .catch((error: unknown) => {
        if (!(error instanceof ActivityFailure)) throw error;
      })
      .then(() => 'over'),
  );
  const ask = async () => {
    const pending = await pendingDetails('takeTurn');
    state.lastAnswer = pending?.failure ?? 'nobody has answered yet whose turn it is';
    context.enterBriefly('waiting');
  };
  try {
    await context.whileBusy('the follow-up waits for its turn at the job', () =>
      endOrDeadline(context, activity, FIRST_QUESTION_MS, ask),
    );
  } finally {
    activity.cancel();
  }
  refuseAfterDeadline(state);
  state.lastAnswer = null;
}

/** The turn at a job: one is open at a time, by its workflow id. It asks whether its holder has ended: nobody can be relied on to tell. */
export async function followUpTurn(holder: TurnHolder): Promise<void> {
  await questionProxy('has the follow-up ended?').awaitEnd(holder);
}
