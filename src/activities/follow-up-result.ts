import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import {
  describeCancellation,
  describeConflict,
  parseFollowUpFailure,
  type Outcome,
} from '../contract/outcome';
import type { FollowUpActivities } from '../contract/activities';
import { fetchOutcome } from '../temporal/fetch-outcome';
import { pollAgainError } from './attempt';

/** Of the first question, as many have ended; then it may take hours. */
const FIRST_WAIT_MS = 2_000;
const MAX_WAIT_MS = 60_000;

/** The types of the ends that no failure of the workflow tells; any other has its own. */
const FAILURE_TYPE_BY_OUTCOME: Partial<Record<Outcome, string>> = {
  conflict: 'FollowUpConflict',
  cancelled: 'FollowUpCancelled',
  terminated: 'FollowUpTerminated',
  'timed-out': 'FollowUpTimedOut',
  missing: 'FollowUpNotFound',
  unreadable: 'FollowUpBroken',
};

export const followUpResult: FollowUpActivities['followUpResult'] = async (followUp) => {
  const { client, info } = Context.current();
  // Another prompt is somebody else's: a workflow's own child carries its own.
  const reference = { ...followUp, shouldIncludeResult: true, foreignIfStartedBefore: Infinity };
  const {
    outcome: recordedOutcome,
    unreadableOutcome,
    result,
    failure,
    receipt = null,
  } = await fetchOutcome(client, reference);
  const reason = unreadableOutcome?.message ?? 'the follow-up still runs';
  if (recordedOutcome === null)
    throw pollAgainError(Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * info.attempt), reason);
  const { outcome, delivery, message } = recordedOutcome;
  if (result !== undefined && outcome !== 'unreadable') return result;
  let failureMessage = outcome === 'unreadable' ? message : (failure?.message ?? message);
  if (outcome === 'cancelled') failureMessage = describeCancellation(receipt);
  // Where nothing is left to compare, nothing is known of what was sent.
  if (outcome === 'conflict' && delivery === 'not-sent')
    failureMessage = describeConflict(followUp.workflowId);
  const { details = { job: null, receipt } } = (failure && parseFollowUpFailure(failure)) ?? {};
  // Not as it was: after one that may be retried, such as another program's, the server would ask again for ever.
  throw ApplicationFailure.nonRetryable(failureMessage, FAILURE_TYPE_BY_OUTCOME[outcome] ?? outcome, details);
};
