import { ActivityFailure, CancelledFailure, TimeoutFailure, workflowInfo } from '@temporalio/workflow';
import type { SendOutcome } from '../contract/activities';
import { formatDuration } from '../contract/duration';
import { jobState } from '../contract/job';
import { sendProxy } from './activity-proxies';
import { readBaseline } from './baseline';
import { nextWait } from './cadence';
import { afterSend } from './delivery';
import { followUpFailure } from './failures';
import type { Run } from './run';
import { afterReading, NO_TROUBLE } from './trouble';
import { watchFrom } from './watch-step';

type UnsentOutcome = Extract<SendOutcome, { verdict: 'not-sent' }>;

/**
 * Brings the message to the service, once. What is certainly not sent is sent again, with back-off, after another
 * look at the job; what is certainly rejected is not; what nobody can tell ends the follow-up.
 *
 * A follow-up never continues as new before its message is delivered: the run's id is what tells the send activity
 * that the run was reset (measured: a run continued from a reset one looks like a fresh one).
 *
 * @throws ApplicationFailure `JobNotFound`, `FollowUpRejected`, `DeliveryUnknown` or `DeadlineExceeded`
 */
export async function deliver(run: Run, prompt: string): Promise<void> {
  const { state } = run;
  let trouble = NO_TROUBLE;
  for (;;) {
    const baseline = await readBaseline(run);
    state.baseline = jobState(baseline);
    run.enter('sending');
    const sentAt = Date.now();
    const outcome = await post(run, prompt);
    state.delivery = afterSend(state.delivery, outcome);
    switch (outcome.verdict) {
      case 'accepted':
        state.sentAt = sentAt;
        state.job = outcome.job;
        state.lastAnswer = outcome.job.status;
        state.watch = watchFrom(baseline, outcome.job, sentAt, Date.now());
        return;
      case 'rejected':
        state.sentAt = sentAt;
        throw followUpFailure('FollowUpRejected', sentence(outcome.message), state, outcome);
      case 'unknown':
        state.sentAt = sentAt;
        throw followUpFailure('DeliveryUnknown', sentence(outcome.message), state, outcome);
      case 'not-sent':
        state.lastAnswer = outcome.message;
        if (!outcome.repeatable) throw followUpFailure('FollowUpRejected', sentence(outcome.message), state);
        trouble = afterReading(trouble, { kind: 'trouble', ...outcome }, Date.now());
        await pauseBeforeRepeat(run, outcome, nextWait(state.plan.polling, 0, trouble, Math.random));
    }
  }
}

/** One POST at most, by an activity; every end of it is an outcome, except the cancellation of an unsent one. */
async function post(run: Run, prompt: string): Promise<SendOutcome> {
  const { plan, delivery, deadlineAt } = run.state;
  const send = sendProxy(
    run.settings,
    Math.max(1, deadlineAt - Date.now()),
    delivery.sends === 0 ? 'send the message' : `send the message (${delivery.sends} before)`,
  );
  run.sending = true;
  try {
    const { projectId, jobId } = plan;
    const { firstExecutionRunId } = workflowInfo();
    return await send.sendMessage({ projectId, jobId, prompt, firstExecutionRunId });
  } catch (error) {
    return outcomeOfLostSend(error);
  } finally {
    run.sending = false;
  }
}

/** What it proves that the send activity gave no outcome. It never throws by itself. */
function outcomeOfLostSend(error: unknown): SendOutcome {
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  // The server cancels an activity only as long as no worker has taken it up; a POST under way is waited for.
  if (cause instanceof CancelledFailure) throw error;
  if (cause instanceof TimeoutFailure && cause.timeoutType === 'SCHEDULE_TO_START') {
    const message = 'no worker took the send up; does one poll the task queue of the sends?';
    return { verdict: 'not-sent', repeatable: true, answered: false, label: 'no worker', message };
  }
  const message =
    cause instanceof TimeoutFailure
      ? 'the worker that was to send the message did not report'
      : `the send ended without an answer (${cause?.message ?? error.message})`;
  return { verdict: 'unknown', label: 'no report', message };
}

async function pauseBeforeRepeat(run: Run, outcome: UnsentOutcome, waitMs: number): Promise<void> {
  const soFar = outcome.answered ? 'not processed' : 'nothing sent yet';
  await run.pause(waitMs, `${outcome.message}; ${soFar}; next try in ${formatDuration(waitMs)}`);
}

/** A message from the wire as a sentence. */
function sentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}
