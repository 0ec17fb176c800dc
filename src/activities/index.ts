import type { FollowUpActivities, WorkerSettings } from '../contract/activities';
import type { AgentApi } from '../agent-api/client';
import { getJobBy } from './get-job';
import { isSendUnderWay } from './is-send-under-way';
import { sendMessageBy } from './send-message';

/** The activities of a worker, bound to its agent service and its configuration. */
export function createActivities(agentApi: AgentApi, settings: WorkerSettings): FollowUpActivities {
  return {
    workerSettings: () => Promise.resolve(settings),
    getJob: getJobBy(agentApi),
    isSendUnderWay,
    sendMessage: sendMessageBy(agentApi),
  };
}
