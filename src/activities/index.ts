import type { AgentApi } from '../agent-api/client';
import type { FollowUpActivities, WorkerSettings } from '../contract/activities';
import { followUpEnd } from './follow-up-end';
import { getJobBy } from './get-job';
import { type InProcessOptions, InProcessPolls } from './in-process-polls';
import { pendingDetailsBy } from './pending-details';
import { pollJobBy } from './poll-job';
import { sendMessageBy } from './send-message';

export { LONGEST_WAIT_MS } from './in-process-polls';
export { PATIENCE_MS } from './poll-job';

/** The activities of a worker, bound to its agent service and its configuration. */
export function createActivities(
  agentApi: AgentApi,
  settings: WorkerSettings,
  inProcess: InProcessOptions,
): FollowUpActivities {
  const polls = new InProcessPolls(inProcess);
  return {
    workerSettings: () => Promise.resolve(settings),
    getJob: getJobBy(agentApi),
    pollJob: pollJobBy(agentApi, polls),
    pendingDetails: pendingDetailsBy(polls),
    followUpEnd,
    sendMessage: sendMessageBy(agentApi),
  };
}
