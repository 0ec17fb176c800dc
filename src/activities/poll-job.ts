import { Context } from '@temporalio/activity';
import type { AgentApi } from '../agent-api/client';
import { type FollowUpActivities, countReadsBeforeAttempt } from '../contract/activities';
import { isSameState } from '../contract/job';
import { formatDuration } from '../contract/duration';
import { pollIntervalMs } from '../follow-up/cadence';
import { pollAgainError, serverClock } from './attempt';

/**
 * Creates the activity `pollJob`, which makes one read with each attempt after the first. While the job stays the same, the attempt
 * fails with the next interval as its retry delay. Temporal then keeps the time, so a waiting poll takes neither a slot nor memory
 * and adds no event. The first attempt makes no read and only waits in this way, because a timer before the activity would add five
 * events. The response of a read at `decidesAt` or later is returned even if the job is unchanged.
 */
export function createPollJob(agentApi: AgentApi): FollowUpActivities['pollJob'] {
  return async ({
    projectId,
    jobId,
    lastState,
    firstReadAt,
    decidesAt,
    pollingStartedAt,
    polling,
    pollsBefore,
  }) => {
    const { attempt } = Context.current().info;
    const serverTime = serverClock();
    const requestedAt = serverTime();
    const pollAgain = (reads: number, waitMs: number) => {
      const poll = pollsBefore + reads === 0 ? '' : `poll ${pollsBefore + reads}: `;
      const message = `${poll}${lastState.status}, next read in ${formatDuration(waitMs)}`;
      // A retry delay of 0 would mean the maximum interval of the retry policy.
      return pollAgainError(Math.max(1, waitMs), message, { reads });
    };
    if (attempt === 1) throw pollAgain(0, firstReadAt - requestedAt);

    const reads = countReadsBeforeAttempt(attempt) + 1;
    const response = await agentApi.getJob({ projectId, jobId });
    const isUnchanged = response.kind === 'job' && isSameState(response.job, lastState);
    if (!isUnchanged || requestedAt >= decidesAt) return { reads, response, requestedAt };
    const now = serverTime();
    throw pollAgain(
      reads,
      Math.min(pollIntervalMs(polling, now - pollingStartedAt, Math.random), decidesAt - now),
    );
  };
}
