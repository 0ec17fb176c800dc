import { activityInfo, ApplicationFailure, heartbeat, log } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import type { AgentApi } from '../agent-api/client';
import type { FollowUpActivities, Tally } from '../contract/activities';
import { formatDuration } from '../contract/duration';
import { NO_CHANGE } from '../contract/names';
import { nextWait } from '../polling/cadence';
import { needsDecision, startTally, tallied, wordsOf } from '../polling/tally';
import { beating } from './beating';

/**
 * How long one activity polls by its own retries, in milliseconds. After it the workflow decides anew, so that history
 * gets the counts now and then, and a deadline that was extended in the meantime comes to bear.
 */
export const PATIENCE_MS = 30 * 60_000;

/**
 * The activity `getJobPatiently`: one GET an attempt, and the attempts are the polls. An answer that needs no decision
 * fails the attempt with the wait that the cadence asks for, so that the server keeps the time and history stays empty.
 *
 * What was counted goes along as heartbeat details, which survive a worker's death (measured: exact in 15 of 15
 * attempts when recorded right before the failure), and as the failure's detail, which the workflow gets when the
 * patience is over.
 */
export function getJobPatientlyBy(agentApi: AgentApi): FollowUpActivities['getJobPatiently'] {
  return async ({ projectId, jobId, known, since, polling, trouble }) => {
    const before = recordedTally() ?? startTally(trouble);
    const answer = await beating(before, () => agentApi.getJob({ projectId, jobId }));
    if (needsDecision(answer, known)) return { answer, before };

    const now = Date.now();
    const counted = tallied(before, answer, now);
    const waitMs = nextWait(polling, now - since, counted.trouble, Math.random);
    const words = wordsOf(answer);
    if (answer.kind === 'trouble' && words !== before.lastAnswer) log.warn(`read failed: ${words}`);
    const tally: Tally = { ...counted, nextReadAt: now + waitMs };
    heartbeat(tally);
    throw ApplicationFailure.create({
      type: NO_CHANGE,
      message: `poll ${tally.polls} of this activity: ${words}, next in ${formatDuration(waitMs)}`,
      nonRetryable: false,
      category: ApplicationFailureCategory.BENIGN,
      nextRetryDelay: waitMs,
      details: [tally],
    });
  };
}

/** What the attempt before has recorded; undefined in the first one. */
function recordedTally(): Tally | undefined {
  return activityInfo().heartbeatDetails as Tally | undefined;
}
