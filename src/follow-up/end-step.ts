import type { RequestFailure } from '../contract/request-failure';
import type { FailureType } from '../contract/result';
import { isForbidden, isJobMissing } from './failure-streak';
import { lastResponseText, reportedDelivery, sentence } from './receipt';
import { type FollowUpState, getObservations } from './state';
import type { FollowUpEnd, Step } from './step';

export function endAs(outcome: FollowUpEnd): Step {
  const phase = { result: 'done', failure: 'failed', cancelled: 'cancelled' } as const;
  return { do: 'end', phase: phase[outcome.kind], outcome };
}

export function endWithFailure(type: FailureType, reason: string, cause: RequestFailure | null = null): Step {
  return endAs({ kind: 'failure', type, reason, cause });
}

/**
 * Returns the step `end` if the latest send or read ends a follow-up whose message is not delivered; null if the follow-up
 * continues.
 */
export function endIfNotSendable(state: FollowUpState): Step | null {
  const { plan, job, failures, delivery, waitingForJob } = state;
  const { lastFailure } = failures;
  if (waitingForJob !== null && plan.whenActive === 'reject')
    return endUndelivered(state, `The job is ${job?.status ?? 'active'}, and whenActive is reject.`);
  if (lastFailure?.isPermanent === true)
    return endUndelivered(state, sentence(lastFailure.message), lastFailure);
  // After the job was read or the message may have arrived, a rejected read only delays the follow-up.
  if (job !== null || delivery.kind !== 'unsent') return endIfJobMissing(state);
  if (lastFailure?.httpStatus === 404)
    return endWithFailure(
      'JobNotFound',
      `The agent service has no such job: ${sentence(lastFailure.message)}`,
      lastFailure,
    );
  if (lastFailure?.httpStatus === 400 || isForbidden(lastFailure))
    return endUndelivered(state, `The job can't be read: ${sentence(lastFailure.message)}`, lastFailure);
  return null;
}

/**
 * Ends a follow-up whose message was rejected or can't be sent. If an earlier POST may have arrived, the failure is
 * `DeliveryUnknown`.
 */
export function endUndelivered(
  state: FollowUpState,
  reason: string,
  cause: RequestFailure | null = null,
): Step {
  const isUnknown = reportedDelivery(state).verdict === 'unknown';
  return endWithFailure(isUnknown ? 'DeliveryUnknown' : 'FollowUpRejected', reason, cause);
}

/** Returns the step `end` if the reads show that the job no longer exists; otherwise null. */
export function endIfJobMissing(state: FollowUpState): Step | null {
  const { failures, lastRequestAt, plan } = state;
  if (!isJobMissing(failures, lastRequestAt, plan.maxStalenessMs, getObservations(state)?.freshFrom))
    return null;
  const reason = 'The job no longer exists: the agent service has returned 404 for all recent reads.';
  return endWithFailure('JobNotFound', reason, failures.lastFailure);
}

/** Ends the follow-up after its deadline. No send starts after the deadline. */
export function endAfterDeadline(state: FollowUpState): Step {
  const response = lastResponseText(state) ?? 'none';
  const status = state.job?.status ?? 'never read';
  const reason = `The deadline passed. The last status of the job was: ${status}. The last response was: ${sentence(response)}`;
  return endWithFailure('DeadlineExceeded', reason);
}
