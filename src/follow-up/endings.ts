import type { RequestFailure } from '../core/activities';
import { lastResponseText, reportedDelivery, sentence, unknownDeliveryReason } from './receipt';
import type { DeliveryState, FollowUpState } from './state';
import { endWithFailure, type Step } from './step';

/** The failures that end a follow-up, each with its reason. */

/** The agent service rejected the message, or the message can't be sent. An earlier POST may have arrived all the same. */
export function undeliveredEnd(
  state: FollowUpState,
  cause: RequestFailure | null,
  reason = sentence(cause?.message ?? 'The message was rejected'),
): Step {
  const isUnknown = reportedDelivery(state).verdict === 'unknown';
  return endWithFailure(isUnknown ? 'DeliveryUnknown' : 'FollowUpRejected', reason, cause);
}

export function unknownDeliveryEnd(
  state: FollowUpState,
  delivery: DeliveryState & { kind: 'unknown' },
): Step {
  return endWithFailure('DeliveryUnknown', unknownDeliveryReason(state, delivery), delivery.reason);
}

export function jobLostEnd({ failures }: FollowUpState): Step {
  const reason = 'The job existed, and since then the agent service has returned 404 for every read.';
  return endWithFailure('JobNotFound', reason, failures.last);
}

/** The deadline has passed: nothing is sent after it. */
export function overdueEnd(state: FollowUpState): Step {
  const response = lastResponseText(state) ?? 'none';
  const status = state.job?.status ?? 'never read';
  const reason = `The deadline passed. The last status of the job was: ${status}. The last response was: ${sentence(response)}`;
  return endWithFailure('DeadlineExceeded', reason);
}
