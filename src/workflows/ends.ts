import type { ApplicationFailure } from '@temporalio/workflow';
import { followUpFailure } from './failures';
import type { FollowUpContext } from './context';

/** The job answered once, and has been gone for long enough. */
export function lostJob(context: FollowUpContext): ApplicationFailure {
  const reason = 'The job was there, and the service has answered 404 to every read since.';
  return followUpFailure('JobNotFound', reason, context.state, { httpStatus: 404 });
}

/** @throws ApplicationFailure `DeadlineExceeded` once the deadline has passed: nothing is sent after it */
export function refuseAfterDeadline(context: FollowUpContext): void {
  if (!context.deadlinePassed) return;
  const reason = `The deadline passed in phase ${context.state.phase} (last answer: ${context.state.lastAnswer ?? 'none'}).`;
  throw followUpFailure('DeadlineExceeded', reason, context.state);
}

/** The deadline of a watch passed, and its last read brought nothing that is believed. */
export function overdue(context: FollowUpContext): ApplicationFailure {
  const { job, lastAnswer } = context.state;
  const reason = `The deadline passed; the job's last status was ${job?.status ?? 'never read'} (last answer: ${lastAnswer ?? 'none'}).`;
  return followUpFailure('DeadlineExceeded', reason, context.state);
}
