import { allHandlersFinished, continueAsNew, workflowInfo } from '@temporalio/workflow';
import { formatDuration } from '../contract/duration';
import type { AgentJob } from '../contract/job';
import type { FollowUpResult } from '../contract/result';
import { lostJob, overdue } from './ends';
import { lastAnswerInWords, poll, pollPatiently } from './poll';
import type { Run } from './run';
import type { ContinuedFollowUp, WatchState } from './state';
import { nextStep } from './watch-step';

/**
 * Watches the job until its terminal status is believed and its link has settled: durable timer, read, decision.
 *
 * @returns the final job; the evidence is in the state
 * @throws ApplicationFailure `JobNotFound` or `DeadlineExceeded`
 */
export async function watch(run: Run, watching: WatchState): Promise<AgentJob> {
  const { state } = run;
  for (;;) {
    const step = nextStep(state, watching, Date.now(), run.lastAskedAt, Math.random);
    if (step.kind === 'lost') throw lostJob(run);
    if (step.kind === 'overdue') throw overdue(run);
    state.evidence = step.evidence;
    if (step.kind === 'settled') return seenJob(run);

    run.enter(step.phase);
    // A handler that waits for the next answer keeps this run for one more round.
    if (workflowInfo().continueAsNewSuggested && allHandlersFinished()) {
      await continueAsNew<(next: ContinuedFollowUp) => Promise<FollowUpResult>>({ continued: state });
    }
    await run.pause(step.waitMs, `${lastAnswerInWords(run)}, next in ${formatDuration(step.waitMs)}`);
    if (step.patient && run.mayBePatient()) await pollPatiently(run, watching, state.sentAt ?? Date.now());
    else await poll(run, watching);
  }
}

function seenJob(run: Run): AgentJob {
  if (run.state.job === null) throw new TypeError('a job was believed that was never seen');
  return run.state.job;
}
