import type { AgentApi } from '../agent-api/client';
import type { FollowUpActivities } from '../contract/activities';
import { beating } from './beating';

/** The activity `getJob`: one GET. Trouble on the wire is its result, and no failure of the activity. */
export function getJobBy(agentApi: AgentApi): FollowUpActivities['getJob'] {
  return (address) => beating(undefined, () => agentApi.getJob(address));
}
