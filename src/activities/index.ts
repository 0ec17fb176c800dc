import type { AgentApi } from '../agent-api/client';
import type { FollowUpActivities, WorkerSettings } from '../contract/activities';
import { earlierPage } from './earlier-page';
import { followUpEnd } from './follow-up-end';
import { getJobBy } from './get-job';
import { type InProcessOptions, InProcessPolls } from './in-process-polls';
import { LOOK_EVERY_MS, pageTroubleEvery } from './page-trouble';
import { pendingDetailsBy } from './pending-details';
import { pollJobBy } from './poll-job';
import { sendMessageBy } from './send-message';
import { wasReset } from './was-reset';

export { LONGEST_WAIT_MS } from './in-process-polls';
export { PATIENCE_MS } from './poll-job';

/**
 * The activities of a worker, bound to its agent service and its configuration.
 *
 * @param lookEveryMs how often the pages of a batch look whether all is there, in milliseconds
 */
export function createActivities(
  agentApi: AgentApi,
  settings: WorkerSettings,
  inProcess: InProcessOptions,
  lookEveryMs = LOOK_EVERY_MS,
): FollowUpActivities {
  const polls = new InProcessPolls(inProcess);
  return {
    workerSettings: () => Promise.resolve(settings),
    getJob: getJobBy(agentApi),
    pollJob: pollJobBy(agentApi, polls),
    pendingDetails: pendingDetailsBy(polls),
    followUpEnd,
    earlierPage,
    pageTrouble: pageTroubleEvery(lookEveryMs),
    wasReset,
    sendMessage: sendMessageBy(agentApi),
  };
}
