import { allHandlersFinished, continueAsNew, workflowInfo } from '@temporalio/workflow';
import { formatDuration } from '../contract/duration';
import type { AgentJob } from '../contract/job';
import type { FollowUpResult } from '../contract/result';
import { lostJob, overdue } from './ends';
import type { FollowUpContext } from './context';
import { lastAnswerInWords, readNext } from './poll';
import type { ContinuedFollowUp, Watch } from './state';
import { nextStep } from './watch-step';

/**
 * Watches the job until its terminal status is believed and its link has settled: durable timer, read, decision.
 *
 * @returns the final job; the evidence is in the state
 * @throws ApplicationFailure `JobNotFound` or `DeadlineExceeded`
 */
export async function watchJob(context: FollowUpContext, watch: Watch): Promise<AgentJob> {
  const { state } = context;
  for (;;) {
    const step = nextStep(state, watch, Date.now(), context.lastAsked, Math.random);
    if (step.kind === 'lost') throw lostJob(context);
    if (step.kind === 'overdue') throw overdue(context);
    state.evidence = step.evidence;
    if (step.kind === 'settled') return seenJob(context);

    context.enter(step.phase);
    // A handler that waits for the next answer keeps this run for one more round.
    if (workflowInfo().continueAsNewSuggested && allHandlersFinished()) {
      await continueAsNew<(next: ContinuedFollowUp) => Promise<FollowUpResult>>({ continued: state });
    }
    const { waitMs, single } = step;
    const why = `${lastAnswerInWords(context)}, next in ${formatDuration(waitMs)}`;
    await readNext(context, watch, { waitMs, why, single });
  }
}

function seenJob(context: FollowUpContext): AgentJob {
  if (context.state.job === null) throw new TypeError('a job was believed that was never seen');
  return context.state.job;
}
