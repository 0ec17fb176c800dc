import type { Phase } from '../core/result';
import { jobLostEnd, overdueEnd, undeliveredEnd } from './endings';
import { isJobLost } from './failures';
import type { SendPermit } from './permits';
import { sentence } from './receipt';
import type { FollowUpState } from './state';
import { endWithFailure, type Moment, nextRequestAt, readOrPoll, requestPhase, type Step } from './step';

/** A POST is permitted: waits for the job lock or an idle job if the latest send found that it must, and sends otherwise. */
export function nextSendStep(state: FollowUpState, permit: SendPermit, moment: Moment): Step {
  const { job, deadlineAt, lockHolder, waitingForJob } = state;
  const end = sendEnd(state);
  if (end !== null) return end;
  if (moment.now >= deadlineAt) return overdueEnd(state);
  if (lockHolder !== null) return { do: 'wait for job lock', phase: 'waiting-for-job', holder: lockHolder };
  if (waitingForJob !== null) {
    const { since, reads } = waitingForJob;
    const phase = 'waiting-for-job';
    return readOrPoll(state, { phase, known: job, since, reads, until: deadlineAt }, moment);
  }
  const isDelayed = state.failures.last !== null || moment.minWaitMs > 0;
  const at = isDelayed ? nextRequestAt(state, 0, moment) : moment.now;
  const phase: Phase = requestPhase(state, job === null ? 'starting' : 'sending');
  return { do: 'send', phase, at, permit, earlierBaseline: earlierBaseline(state, at) };
}

/** The end that the latest send or read causes while nothing is delivered; null if the follow-up goes on. */
function sendEnd(state: FollowUpState): Step | null {
  const { plan, job, failures, delivery, waitingForJob, lastRequestAt } = state;
  const { last } = failures;
  if (waitingForJob !== null && plan.whenActive === 'reject')
    return undeliveredEnd(state, null, `The job is ${job?.status ?? 'active'}, and whenActive is reject.`);
  if (last === null) return null;
  if (last.isPermanent === true) return undeliveredEnd(state, last);
  // Once the job was read, or the message may have arrived, a rejected read only delays the follow-up.
  if (job === null && delivery.kind === 'unsent') {
    if (last.httpStatus === 404)
      return endWithFailure(
        'JobNotFound',
        `The agent service has no such job: ${sentence(last.message)}`,
        last,
      );
    if (last.httpStatus === 400 || last.httpStatus === 403)
      return undeliveredEnd(state, last, `The job can't be read: ${sentence(last.message)}`);
    return null;
  }
  return isJobLost(failures, lastRequestAt, plan.maxStalenessMs) ? jobLostEnd(state) : null;
}

/** The job before a POST of unknown delivery, if a read that is requested at `at` is fresh for that POST. */
function earlierBaseline({ delivery }: FollowUpState, at: number) {
  return delivery.kind === 'unknown' && at >= delivery.reads.freshFrom ? delivery.reads.baseline : null;
}
