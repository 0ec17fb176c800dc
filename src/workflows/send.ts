import {
  ActivityFailure,
  CancellationScope,
  CancelledFailure,
  isCancellation,
  sleep,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { SendOutcome } from '../contract/activities';
import { readProxy, sendProxy } from './activity-proxies';
import { pollInterval } from '../polling/cadence';
import { poll } from './poll';
import type { Run } from './run';
import type { WatchState } from './state';

/**
 * A POST that is unanswered for so long is read beside: a turn may begin and end before the time-out, and to have seen
 * it is the only proof of delivery when the worker has died.
 */
const READ_BESIDE_AFTER_MS = 5_000;

/**
 * Makes at most one POST, by an activity, and reads the job beside it while it stays unanswered.
 *
 * A POST under way is never abandoned, by cancellation, deadline or shutdown: its outcome is awaited first.
 *
 * @param allowedAgain the caller or an operator has allowed this POST although an earlier one may have arrived
 * @returns what is proved of the POST
 * @throws ActivityFailure when the workflow is cancelled before a worker has taken the send up: nothing was sent
 */
export async function send(
  run: Run,
  prompt: string,
  watching: WatchState,
  allowedAgain: boolean,
): Promise<SendOutcome> {
  run.sending = true;
  const besides = new CancellationScope();
  const reading = besides.run(() => readBeside(run, watching));
  try {
    return await post(run, prompt, allowedAgain);
  } finally {
    run.sending = false;
    besides.cancel();
    await reading;
  }
}

async function post(run: Run, prompt: string, allowedAgain: boolean): Promise<SendOutcome> {
  const { plan, delivery, deadlineAt } = run.state;
  const { projectId, jobId } = plan;
  const firstExecutionRunId = allowedAgain ? null : workflowInfo().firstExecutionRunId;
  const summary = delivery.sends === 0 ? 'send the message' : `send the message (POST ${delivery.sends + 1})`;
  try {
    const proxy = sendProxy(run.settings, projectId, Math.max(1, deadlineAt - Date.now()), summary);
    return await proxy.sendMessage({ projectId, jobId, prompt, firstExecutionRunId });
  } catch (error) {
    return outcomeOfLostSend(error);
  }
}

/** What it proves that the send activity gave no outcome; it never throws by itself. */
function outcomeOfLostSend(error: unknown): SendOutcome {
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  // The server cancels an activity only as long as no worker has taken it up; a POST under way is waited for.
  if (cause instanceof CancelledFailure) throw error;
  // A start that the server has let lapse can't happen any more. Every other time-out leaves the question open.
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

/**
 * Reads until it is cancelled, which is how it ends; nothing before a worker has begun the send: a task that waits in
 * its queue, behind a rate limit for instance, moves no job.
 */
async function readBeside(run: Run, watching: WatchState): Promise<void> {
  const begunAt = Date.now();
  try {
    let waitMs = READ_BESIDE_AFTER_MS;
    for (;;) {
      await sleep(run.sparing(waitMs), { summary: 'look at the job beside a send that takes long' });
      if (await isUnderWay(run)) {
        await poll(run, watching);
        run.show();
      }
      waitMs = pollInterval(run.state.plan.polling, Date.now() - begunAt, Math.random);
    }
  } catch (error) {
    if (!isCancellation(error)) throw error;
  }
}

async function isUnderWay(run: Run): Promise<boolean> {
  try {
    const { projectId } = run.state.plan;
    // Asked again soon: this question need not wait for longer than a worker takes to come back.
    return await readProxy(run.settings, projectId, 0, 'has a worker begun the send?').isSendUnderWay();
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    return false;
  }
}
