import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { Outcome } from '../core/end';
import type { FollowUpActivities } from '../core/wire';
import { findEnd } from '../temporal/follow-up-end';
import { askAgainIn } from './attempt';

/** For a workflow of somebody else: the first question comes soon, as many have ended; then it may take hours. */
const FIRST_RESULT_WAIT_MS = 2_000;
const LONGEST_RESULT_WAIT_MS = 60_000;

/** Ends without a result or a failure of the workflow itself. */
const TYPES: Partial<Record<Outcome, string>> = {
  conflict: 'FollowUpConflict',
  cancelled: 'FollowUpCancelled',
  terminated: 'FollowUpTerminated',
  'timed-out': 'FollowUpTimedOut',
  gone: 'FollowUpNotFound',
};

export const followUpResult: FollowUpActivities['followUpResult'] = async (followUp) => {
  const { client, info } = Context.current();
  const { end, result, failure } = await findEnd(client, { ...followUp, wantsResult: true });
  if (failure !== undefined) throw failure;
  if (result !== undefined) return result;
  if (end !== null) throw ApplicationFailure.nonRetryable(end.message ?? '', TYPES[end.outcome]);
  const waitMs = Math.min(LONGEST_RESULT_WAIT_MS, FIRST_RESULT_WAIT_MS * info.attempt);
  throw askAgainIn(waitMs, 'the follow-up still runs');
};
