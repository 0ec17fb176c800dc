import type { ApplicationFailure } from '@temporalio/workflow';
import type { SendTrouble } from '../contract/activities';
import { formatDuration } from '../contract/duration';
import { type AgentJob, jobState } from '../contract/job';
import { readBaseline } from './baseline';
import { nextWait } from '../polling/cadence';
import { afterSend } from './delivery';
import { refuseAfterDeadline } from './ends';
import { followUpFailure, sentence, sentSoFar } from './failures';
import { witness } from './poll';
import { reconcile } from './reconcile';
import type { Run } from './run';
import type { WatchState } from './state';
import { send } from './send';
import { afterReading, NO_TROUBLE } from '../polling/trouble';
import { watchFrom } from './watch-step';

/**
 * Brings the message to the service, once. What is certainly not sent is sent again, with back-off, after another
 * look at the job; what is certainly rejected is not; what nobody can tell is looked for by reading the job.
 *
 * A follow-up never continues as new before its message is delivered: the run's id is what tells the send activity
 * that the run was reset (measured: a run continued from a reset one looks like a fresh one).
 *
 * @throws ApplicationFailure `JobNotFound`, `FollowUpRejected`, `DeliveryUnknown` or `DeadlineExceeded`
 */
export async function deliver(run: Run, prompt: string): Promise<void> {
  const { state } = run;
  let trouble = NO_TROUBLE;
  let allowedAgain = false;
  for (;;) {
    const baseline = await readBaseline(run);
    refuseAfterDeadline(run);
    run.enter('sending');
    const sentAt = Date.now();
    const watching = watchFrom(baseline, sentAt);
    const outcome = await send(run, prompt, watching, allowedAgain);
    state.delivery = afterSend(state.delivery, outcome);
    if (outcome.verdict === 'not-sent') {
      state.lastAnswer = outcome.message;
      if (!outcome.repeatable) throw refusedSend(run, outcome);
      trouble = afterReading(trouble, { kind: 'trouble', ...outcome }, Date.now());
      const waitMs = nextWait(state.plan.polling, 0, trouble, Math.random);
      const words = `${outcome.message}; ${sentSoFar(state.delivery)}; next try in ${formatDuration(waitMs)}`;
      await run.pause(waitMs, words);
      continue;
    }

    state.baseline = jobState(baseline);
    state.sentAt = sentAt;
    state.watch = watching;
    if (outcome.verdict === 'rejected') throw refusedSend(run, outcome);
    if (outcome.verdict === 'accepted') {
      accept(run, watching, outcome.job, sentAt);
      return;
    }
    if ((await reconcile(run, watching, outcome)) === 'delivered') return;
    allowedAgain = true;
    trouble = NO_TROUBLE;
  }
}

/** The POST's own answer ends the question, and is the first sighting of the job since the send. */
function accept(run: Run, watching: WatchState, job: AgentJob, sentAt: number): void {
  run.state.job = job;
  run.state.lastAnswer = job.status;
  witness(watching, job, sentAt, Date.now());
}

/** A message that an earlier POST may have brought is unknown, whatever the service says of a later one. */
function refusedSend(run: Run, outcome: SendTrouble): ApplicationFailure {
  const type = run.state.delivery.verdict === 'unknown' ? 'DeliveryUnknown' : 'FollowUpRejected';
  return followUpFailure(type, sentence(outcome.message), run.state, outcome);
}
