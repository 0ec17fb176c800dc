import type { ApplicationFailure } from '@temporalio/workflow';
import { followUpFailure } from './failures';
import type { Run } from './run';

/** The job answered once, and has been gone for long enough. */
export function lostJob(run: Run): ApplicationFailure {
  const reason = 'The job was there, and the service has answered 404 to every read since.';
  return followUpFailure('JobNotFound', reason, run.state, { httpStatus: 404 });
}

/** @throws ApplicationFailure `DeadlineExceeded` once the deadline has passed: nothing is sent after it */
export function refuseAfterDeadline(run: Run): void {
  if (!run.deadlinePassed) return;
  const reason = `The deadline passed in phase ${run.state.phase} (last answer: ${run.state.lastAnswer ?? 'none'}).`;
  throw followUpFailure('DeadlineExceeded', reason, run.state);
}

/** The deadline of a watch passed, and its last read brought nothing that is believed. */
export function overdue(run: Run): ApplicationFailure {
  const { job, lastAnswer } = run.state;
  const reason = `The deadline passed; the job's last status was ${job?.status ?? 'never read'} (last answer: ${lastAnswer ?? 'none'}).`;
  return followUpFailure('DeadlineExceeded', reason, run.state);
}
