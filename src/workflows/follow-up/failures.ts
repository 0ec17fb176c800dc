import { ApplicationFailure } from '@temporalio/workflow';
import type { SendTrouble } from '../../core/activities';
import { type Problem, problemTexts } from '../../core/checks';
import { notSentInWords } from '../../core/end';
import type { Delivery, FailureDetails, FailureType } from '../../core/result';
import { MAX_FAILURE_CHARACTERS, singleLine } from '../../core/text';
import type { FollowUpContext } from './context';
import { type FollowUpState, receiptOf } from './state';

/** The failure by which a follow-up ends. @param reason one sentence; what is known of the message is added to it */
export function followUpFailure(
  type: FailureType,
  reason: string,
  state: FollowUpState,
  { httpStatus, serviceMessage }: Pick<SendTrouble, 'httpStatus' | 'serviceMessage'> = {},
): ApplicationFailure {
  const answered = {
    ...(httpStatus !== undefined && { httpStatus }),
    ...(serviceMessage !== undefined && { serviceMessage }),
  };
  const followUp = receiptOf(state, Date.now());
  const details = { job: state.job, followUp, ...answered };
  return failure(type, `${reason} ${deliveryInWords(followUp.delivery)}`, details);
}

export function invalidRequest(
  problems: readonly Problem[],
  requestId: string,
  delivery: Delivery,
): ApplicationFailure {
  const settledAt = new Date(Date.now()).toISOString();
  const unseen = { evidence: null, baseline: null, promptDigest: null, polls: 0, sentAt: null, observed: {} };
  const receipt = { requestId, delivery, ...unseen, settledAt };
  const reason = `${deliveryInWords(delivery)} Invalid request: ${problemTexts(problems)}.`;
  return failure('InvalidRequest', reason, { job: null, followUp: receipt });
}

function failure(type: FailureType, message: string, details: FailureDetails): ApplicationFailure {
  return ApplicationFailure.nonRetryable(singleLine(message, MAX_FAILURE_CHARACTERS), type, details);
}

export function sentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}

export function sentSoFar({ verdict, sends }: Delivery): string {
  if (verdict === 'not-sent') return sends === 0 ? 'nothing sent yet' : 'nothing processed yet';
  return `delivery ${verdict}`;
}

function deliveryInWords({ verdict, confirmedBy, sends }: Delivery): string {
  const isAssumed = confirmedBy === 'assumed';
  return {
    'not-sent': notSentInWords({ sends }),
    rejected: 'The message was sent once and rejected.',
    unknown: 'Nobody can tell whether the message arrived.',
    accepted: isAssumed ? 'The message is assumed to have arrived.' : 'The message was accepted.',
  }[verdict];
}

export const JOB_IS_GONE = 'The job was there, and the service has answered 404 to every read since.';

export function lostJob(context: FollowUpContext): ApplicationFailure {
  return followUpFailure('JobNotFound', JOB_IS_GONE, context.state, { httpStatus: 404 });
}

/** @throws ApplicationFailure `DeadlineExceeded` once the deadline has passed: nothing is sent after it */
export function refuseAfterDeadline({ state }: FollowUpContext): void {
  if (Date.now() < state.deadlineAt) return;
  const reason = `The deadline passed in phase ${state.phase} (last answer: ${state.lastAnswer ?? 'none'}).`;
  throw followUpFailure('DeadlineExceeded', reason, state);
}

export function overdue(context: FollowUpContext): ApplicationFailure {
  const { job, lastAnswer } = context.state;
  const reason = `The deadline passed; the job's last status was ${job?.status ?? 'never read'} (last answer: ${lastAnswer ?? 'none'}).`;
  return followUpFailure('DeadlineExceeded', reason, context.state);
}
