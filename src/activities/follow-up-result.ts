import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { describeCancellation, parseFollowUpFailure, type Outcome } from '../contract/outcome';
import type { FollowUpActivities } from '../contract/activities';
import { fetchOutcome } from '../temporal/fetch-outcome';
import { pollAgainError } from './attempt';

/** The wait after the first check. Many follow-ups end soon. The others can take hours, so the wait grows with each check. */
const FIRST_WAIT_MS = 2_000;
const MAX_WAIT_MS = 60_000;

/** The failure types of the outcomes that are not failure types themselves. */
const FAILURE_TYPE_BY_OUTCOME: Partial<Record<Outcome, string>> = {
  conflict: 'FollowUpConflict',
  cancelled: 'FollowUpCancelled',
  terminated: 'FollowUpTerminated',
  'timed-out': 'FollowUpTimedOut',
  missing: 'FollowUpNotFound',
  unreadable: 'FollowUpUnreadable',
};

export const followUpResult: FollowUpActivities['followUpResult'] = async (followUp) => {
  const { client, info } = Context.current();
  const {
    outcome: recordedOutcome,
    unreadableOutcome,
    result,
    failure,
    receipt = null,
  } = await fetchOutcome(client, { ...followUp, shouldIncludeResult: true });
  const reason = unreadableOutcome?.message ?? 'the follow-up is still running';
  if (recordedOutcome === null)
    throw pollAgainError(Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * info.attempt), reason);
  const { outcome, message } = recordedOutcome;
  if (result !== undefined && outcome !== 'unreadable') return result;
  let failureMessage = outcome === 'unreadable' ? message : (failure?.message ?? message);
  if (outcome === 'cancelled') failureMessage = describeCancellation(receipt);
  const { details = { job: null, receipt } } = (failure && parseFollowUpFailure(failure)) ?? {};
  // The failure is converted, because the original failure may be retryable (for example, from another program's workflow). The
  // Temporal server would then retry this activity indefinitely. The SDK logs a benign failure without a warning, because the
  // activity has done its work.
  throw ApplicationFailure.create({
    message: failureMessage ?? '',
    type: FAILURE_TYPE_BY_OUTCOME[outcome] ?? outcome,
    nonRetryable: true,
    category: ApplicationFailureCategory.BENIGN,
    details: [details],
  });
};
