import { heartbeat } from '@temporalio/activity';
import type { AgentApi } from '../agent-api/client';
import type { FollowUpActivities } from '../contract/activities';

/** A read that takes longer than this tells the server that its worker lives; its heartbeat time-out is 15 s. */
const HEARTBEAT_EVERY_MS = 5_000;

/** The activity `getJob`: one GET. Trouble on the wire is its result, and no failure of the activity. */
export function getJobBy(agentApi: AgentApi): FollowUpActivities['getJob'] {
  return async (address) => {
    const beat = setInterval(heartbeat, HEARTBEAT_EVERY_MS);
    try {
      return await agentApi.getJob(address);
    } finally {
      clearInterval(beat);
    }
  };
}
