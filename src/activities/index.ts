import type { FollowUpActivities, WorkerSettings } from '../contract/activities';
import type { AgentApi } from '../agent-api/client';
import { followUpEnd } from './follow-up-end';
import { getJobBy } from './get-job';
import { getJobPatientlyBy } from './get-job-patiently';

export { PATIENCE_MS } from './get-job-patiently';
import { pendingDetails } from './pending-details';
import { sendMessageBy } from './send-message';

/** The activities of a worker, bound to its agent service and its configuration. */
export function createActivities(agentApi: AgentApi, settings: WorkerSettings): FollowUpActivities {
  return {
    workerSettings: () => Promise.resolve(settings),
    getJob: getJobBy(agentApi),
    getJobPatiently: getJobPatientlyBy(agentApi),
    pendingDetails,
    followUpEnd,
    sendMessage: sendMessageBy(agentApi),
  };
}
