import { formatDuration } from '../contract/duration';
import { type AgentJob, isTerminal } from '../contract/job';
import { nextWait } from '../polling/cadence';
import { isLost, isUnauthorized } from '../polling/trouble';
import type { FollowUpContext } from './context';
import { lostJob, refuseAfterDeadline } from './ends';
import { readNext, record } from './poll';
import { newWatch } from './state';

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
  const waiting = newWatch(active, since);
  record(waiting, active, since, since);
  while (waiting.last === null || !isTerminal(waiting.last.status)) {
    if (isLost(waiting.trouble, context.lastAsked[0], plan.confirmMs)) throw lostJob(context);
    context.enter(isUnauthorized(waiting.trouble) ? 'unauthorized' : 'waiting');
    refuseAfterDeadline(context);
    const waitMs = nextWait(plan.polling, Date.now() - since, waiting.trouble, Math.random);
    const why = `waiting: ${state.lastAnswer ?? ''}, next in ${formatDuration(waitMs)}`;
    await readNext(context, waiting, { waitMs, why, summary: 'waiting: read the job' });
  }
}
