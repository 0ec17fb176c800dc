import type { ApplicationFailure } from '@temporalio/workflow';
import type { SendTrouble } from '../../core/activities';
import { type Problem, problemTexts } from '../../core/checks';
import { deliveryInWords } from '../../core/end';
import type { Delivery, FailureDetails, FailureType } from '../../core/result';
import { failure } from '../failure';
import { type FollowUpState, receiptOf } from './state';

/** The failure by which a follow-up ends. @param reason one sentence; what is known of the message is added to it */
export function followUpFailure(
  type: FailureType,
  reason: string,
  state: FollowUpState,
  { httpStatus, serviceMessage }: Pick<SendTrouble, 'httpStatus' | 'serviceMessage'> = {},
): ApplicationFailure {
  const followUp = receiptOf(state, Date.now());
  const details: FailureDetails = { job: state.job, followUp, httpStatus, serviceMessage };
  return failure(type, `${reason} ${deliveryInWords(followUp.delivery)}`, details);
}

export function invalidRequest(
  problems: readonly Problem[],
  requestId: string,
  delivery: Delivery,
): ApplicationFailure {
  const settledAt = new Date(Date.now()).toISOString();
  const unseen = { evidence: null, baseline: null, promptDigest: null, polls: 0, sentAt: null, observed: {} };
  const followUp = { requestId, delivery, ...unseen, settledAt };
  const reason = `${deliveryInWords(delivery)} Invalid request: ${problemTexts(problems)}.`;
  return failure('InvalidRequest', reason, { job: null, followUp } satisfies FailureDetails);
}

export function sentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}

export function lostJob(
  state: FollowUpState,
  answer: Pick<SendTrouble, 'serviceMessage'> = {},
): ApplicationFailure {
  const reason = 'The job was there, and the service has answered 404 to every read since.';
  return followUpFailure('JobNotFound', reason, state, { ...answer, httpStatus: 404 });
}

/** @throws ApplicationFailure `DeadlineExceeded` once the deadline has passed: nothing is sent after it */
export function refuseAfterDeadline(state: FollowUpState): void {
  if (Date.now() >= state.deadlineAt) throw overdue(state, ` in phase ${state.phase}`);
}

export function overdue(state: FollowUpState, where?: string): ApplicationFailure {
  const { job, lastAnswer } = state;
  const what = where ?? `; the job's last status was ${job?.status ?? 'never read'}`;
  const reason = `The deadline passed${what} (last answer: ${lastAnswer ?? 'none'}).`;
  return followUpFailure('DeadlineExceeded', reason, state);
}
