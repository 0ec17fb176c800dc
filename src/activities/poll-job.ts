import { Context } from '@temporalio/activity';
import type { AgentApi } from '../agent-api/client';
import { type FollowUpActivities, readsBeforeAttempt } from '../contract/activities';
import { sameState } from '../contract/job';
import { formatDuration } from '../contract/duration';
import { pollInterval } from '../follow-up/cadence';
import { pollAgainIn, serverClock } from './attempt';

/**
 * Makes one read with each attempt after the first. While the job stays the same, the attempt fails with the next interval as its
 * retry delay, so that Temporal keeps the time: a waiting poll takes neither a slot nor memory, and adds no event. The first attempt
 * only waits in this way, because a timer before the activity would add five events. The read at `until` is returned in any case.
 */
export function createPollJob(agentApi: AgentApi): FollowUpActivities['pollJob'] {
  return async ({ projectId, jobId, known, firstReadAt, until, since, polling, pollsBefore }) => {
    const { attempt } = Context.current().info;
    const serverTime = serverClock();
    const requestedAt = serverTime();
    const pollAgain = (reads: number, waitMs: number) => {
      const poll = pollsBefore + reads === 0 ? '' : `poll ${pollsBefore + reads}: `;
      const message = `${poll}${known.status}, next read in ${formatDuration(waitMs)}`;
      // A retry delay of 0 would mean the maximum interval of the retry policy.
      return pollAgainIn(Math.max(1, waitMs), message, { reads });
    };
    if (attempt === 1) throw pollAgain(0, firstReadAt - requestedAt);

    const reads = readsBeforeAttempt(attempt) + 1;
    const response = await agentApi.getJob({ projectId, jobId });
    const isUnchanged = response.kind === 'job' && sameState(response.job, known);
    if (!isUnchanged || requestedAt >= until) return { reads, response, requestedAt };
    const now = serverTime();
    throw pollAgain(reads, Math.min(pollInterval(polling, now - since, Math.random), until - now));
  };
}
