import { Context } from '@temporalio/activity';
import { type WorkflowHandle, WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { FollowUpActivities } from '../contract/activities';
import type { FoundEnd } from '../contract/batch-workflows';
import { MEMO_PROMPT_DIGEST, MEMO_RECEIPT, NO_CHANGE } from '../contract/names';

/** How soon a follow-up that runs is asked for again: soon at first, as most of a resumed batch have ended. */
const FIRST_WAIT_MS = 5_000;
const LONGEST_WAIT_MS = 5 * 60_000;

/**
 * The activity `followUpEnd`: how a follow-up has ended that was there before the batch that wants it. A running one is
 * asked for by retries, so that a thousand of them take no slot of a worker while they wait.
 */
export const followUpEnd: FollowUpActivities['followUpEnd'] = async ({ workflowId, promptDigest }) => {
  const { info, client } = Context.current();
  const handle = client.workflow.getHandle(workflowId);
  const { status, memo } = await handle.describe();
  const carried = memo?.[MEMO_PROMPT_DIGEST];
  // One that was started by hand carries no digest; its name says that it is the same.
  if (carried !== undefined && carried !== promptDigest) return { kind: 'conflict' };
  switch (status.name) {
    case 'COMPLETED':
      return { kind: 'result', result: await handle.result() };
    case 'FAILED':
      return endOfFailed(handle);
    case 'CANCELLED':
      return { kind: 'cancelled', receipt: memo?.[MEMO_RECEIPT] ?? null };
    case 'TERMINATED':
      return { kind: 'terminated' };
    case 'TIMED_OUT':
      return { kind: 'timed-out' };
    default:
      throw ApplicationFailure.create({
        type: NO_CHANGE,
        message: 'the follow-up that was there already still runs',
        nonRetryable: false,
        category: ApplicationFailureCategory.BENIGN,
        nextRetryDelay: Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * info.attempt),
      });
  }
};

async function endOfFailed(handle: WorkflowHandle): Promise<FoundEnd> {
  try {
    return { kind: 'result', result: await handle.result() };
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    const { cause } = error;
    const message = cause?.message ?? error.message;
    if (!(cause instanceof ApplicationFailure)) return { kind: 'failure', type: '', message, details: null };
    return { kind: 'failure', type: cause.type ?? '', message, details: cause.details?.[0] ?? null };
  }
}
