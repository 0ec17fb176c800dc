import { ApplicationFailure } from '@temporalio/workflow';
import type { SendTrouble } from '../../core/activities';
import type { Delivery, FailureDetails, FailureType } from '../../core/result';
import { MAX_FAILURE_CHARACTERS, singleLine } from '../../core/text';
import type { FollowUpContext } from './context';
import { type FollowUpState, NOT_SENT, receiptOf } from './state';

/** What an answer of the service adds to a failure. */
type Answered = Pick<SendTrouble, 'httpStatus' | 'serviceMessage'>;

/**
 * The failure by which a follow-up ends: never retried by Temporal, with the last job and the receipt in its details.
 *
 * @param reason one sentence; what is known of the message is added to it
 */
export function followUpFailure(
  type: FailureType,
  reason: string,
  state: FollowUpState,
  answered: Answered = {},
): ApplicationFailure {
  const details: FailureDetails = {
    job: state.job,
    followUp: receiptOf(state, Date.now()),
    ...(answered.httpStatus === undefined ? {} : { httpStatus: answered.httpStatus }),
    ...(answered.serviceMessage === undefined ? {} : { serviceMessage: answered.serviceMessage }),
  };
  const message = singleLine(`${reason} ${deliveryInWords(state.delivery)}`, MAX_FAILURE_CHARACTERS);
  return ApplicationFailure.create({ type, message, nonRetryable: true, details: [details] });
}

/** The failure of an invalid request; `problems` has every problem that was found. */
export function invalidRequest(problems: readonly string[], requestId: string): ApplicationFailure {
  const settledAt = new Date(Date.now()).toISOString();
  const unseen = { evidence: null, baseline: null, polls: 0, sentAt: null, settledAt, observed: {} };
  const details: FailureDetails = { job: null, followUp: { requestId, delivery: NOT_SENT, ...unseen } };
  const message = `${singleLine(`Invalid request: ${problems.join('; ')}`, MAX_FAILURE_CHARACTERS)}. Nothing was sent.`;
  return ApplicationFailure.create({
    type: 'InvalidRequest',
    message,
    nonRetryable: true,
    details: [details],
  });
}

/** A message of the agent API client as a sentence. */
export function sentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}

/** What is known of the message while the follow-up goes on. */
export function sentSoFar({ verdict, sends }: Delivery): string {
  if (verdict === 'not-sent') return sends === 0 ? 'nothing sent yet' : 'nothing processed yet';
  return `delivery ${verdict}`;
}

function deliveryInWords({ verdict, confirmedBy, sends }: Delivery): string {
  switch (verdict) {
    case 'not-sent':
      return sends === 0 ? 'Nothing was sent.' : 'The service has processed nothing.';
    case 'rejected':
      return 'The message was sent once and rejected.';
    case 'unknown':
      return 'Nobody can tell whether the message arrived.';
    case 'accepted':
      return confirmedBy === 'assumed'
        ? 'The message is assumed to have arrived.'
        : 'The message was accepted.';
  }
}

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
