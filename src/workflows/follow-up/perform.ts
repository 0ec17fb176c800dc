import { condition } from '@temporalio/workflow';
import type { WorkerSettings } from '../../contract/activities';
import { singleLine } from '../../contract/text';
import { apply, type FollowUpEvent } from '../../follow-up/apply';
import type { Step } from '../../follow-up/step';
import { waitSummary } from '../../follow-up/web-ui';
import { notifyOfFollowUp } from '../notification';
import { performLockWait } from './wait-for-job-lock';
import { performPoll, performRead } from './perform-read';
import { performSend } from './perform-send';
import type { FollowUpRun } from './run';

/**
 * Performs one step with Temporal, and returns the event that the step caused. The result is null if an update, a cancellation
 * or the deadline ended the step before it caused an event.
 */
export async function perform(
  step: Exclude<Step, { do: 'end' }>,
  run: FollowUpRun,
  settings: WorkerSettings,
): Promise<FollowUpEvent | null> {
  // The step `poll` needs no timer, because the activity `pollJob` waits with its first attempt.
  if ('at' in step && step.do !== 'poll' && (await waitUntilDue(step, run))) return null;
  switch (step.do) {
    case 'wait for job lock':
      return performLockWait(run);
    case 'send':
      return performSend(step, run, settings);
    case 'read':
      return performRead(step, run, settings);
    case 'poll':
      return performPoll(step, run, settings);
    case 'conclude reconciling': {
      const event = { kind: 'reconciling ended' } as const;
      if (run.state.plan.onUnknownDelivery === 'ask')
        await notifyOfFollowUp(apply(run.state, event), null, settings);
      return event;
    }
  }
}

/**
 * Waits on a durable timer until a step is due.
 *
 * @returns whether an update or a cancellation changed the state before the step was due
 */
async function waitUntilDue(step: Step & { at: number }, run: FollowUpRun): Promise<boolean> {
  const before = run.state;
  const now = Date.now();
  if (step.at <= now) return false;
  const summary = singleLine(waitSummary(before, step, now), 200);
  return condition(() => run.state !== before, step.at - now, { summary });
}
