import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { cancelledInWords, conflictInWords, failureOf, type Outcome } from '../contract/outcome';
import type { FollowUpActivities } from '../contract/activities';
import { fetchOutcome } from '../temporal/follow-up-end';
import { pollAgainIn } from './attempt';

/** Of the first question, as many have ended; then it may take hours. */
const FIRST_WAIT_MS = 2_000;
const LONGEST_WAIT_MS = 60_000;

/** The types of the ends that no failure of the workflow tells; any other has its own. */
const TYPES: Partial<Record<Outcome, string>> = {
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
  const meant = { ...followUp, wantsResult: true, foreignBefore: Infinity };
  const { outcome: end, unreadableOutcome: trouble, result, failure, receipt = null } = await fetchOutcome(client, meant);
  const why = trouble?.message ?? 'the follow-up still runs';
  if (end === null) throw pollAgainIn(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * info.attempt), why);
  const { outcome, delivery, message } = end;
  if (result !== undefined && outcome !== 'unreadable') return result;
  let words = outcome === 'unreadable' ? message : (failure?.message ?? message);
  if (outcome === 'cancelled') words = cancelledInWords(receipt);
  // Where nothing is left to compare, nothing is known of what was sent.
  if (outcome === 'conflict' && delivery === 'not-sent') words = conflictInWords(followUp.workflowId);
  const { details = { job: null, receipt } } = (failure && failureOf(failure)) ?? {};
  // Not as it was: after one that may be retried, such as another program's, the server would ask again for ever.
  throw ApplicationFailure.nonRetryable(words, TYPES[outcome] ?? outcome, details);
};
