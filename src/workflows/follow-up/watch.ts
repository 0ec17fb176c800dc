import { allHandlersFinished, continueAsNew, workflowInfo } from '@temporalio/workflow';
import { nextWait } from '../../core/cadence';
import { type AgentJob, isTerminal } from '../../core/job';
import type { FollowUpResult } from '../../core/result';
import { isLost, isUnauthorized } from '../../core/tally';
import { formatDuration } from '../../core/units';
import type { FollowUpContext } from './context';
import { lostJob, overdue, refuseAfterDeadline } from './failures';
import { lastAnswerInWords, readNext, record } from './poll';
import { type ContinuedFollowUp, newWatch, type Watch } from './state';
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
    const step = nextStep(state, watch, Date.now(), context.lastAskedAt, Math.random);
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

/**
 * Waits until a job that is active has a terminal status. It has answered once, so that from here on no single bad
 * answer is believed. Its reads are no polls: no receipt counts them.
 *
 * @throws ApplicationFailure `JobNotFound` or `DeadlineExceeded`
 */
export async function waitUntilAtRest(context: FollowUpContext, active: AgentJob): Promise<void> {
  const { state } = context;
  const { plan } = state;
  const since = Date.now();
  const waiting = newWatch(active, since, since);
  record(waiting, active, since, since);
  while (waiting.last === null || !isTerminal(waiting.last.status)) {
    if (isLost(waiting.trouble, context.lastAskedAt, plan.confirmMs)) throw lostJob(context);
    context.enter(isUnauthorized(waiting.trouble) ? 'unauthorized' : 'waiting');
    refuseAfterDeadline(context);
    const waitMs = nextWait(plan.polling, Date.now() - since, waiting.trouble, Math.random);
    const why = `waiting: ${state.lastAnswer ?? ''}, next in ${formatDuration(waitMs)}`;
    await readNext(context, waiting, { waitMs, why, summary: 'waiting: read the job' });
  }
}
