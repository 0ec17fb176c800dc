import type { FollowUpActivities, WorkerSettings } from '../contract/activities';
import type { AgentApi } from '../agent-api/client';
import { earlierPage } from './earlier-page';
import { followUpEnd } from './follow-up-end';
import { getJobBy } from './get-job';
import { getJobPatientlyBy } from './get-job-patiently';

export { PATIENCE_MS } from './get-job-patiently';
import { isSendUnderWay } from './is-send-under-way';
import { LOOK_EVERY_MS, pageTroubleEvery } from './page-trouble';
import { patientTally } from './patient-tally';
import { sendMessageBy } from './send-message';
import { wasReset } from './was-reset';

/**
 * The activities of a worker, bound to its agent service and its configuration.
 *
 * @param lookEveryMs how often the pages of a batch look whether all is there, in milliseconds
 */
export function createActivities(
  agentApi: AgentApi,
  settings: WorkerSettings,
  lookEveryMs = LOOK_EVERY_MS,
): FollowUpActivities {
  return {
    workerSettings: () => Promise.resolve(settings),
    getJob: getJobBy(agentApi),
    getJobPatiently: getJobPatientlyBy(agentApi),
    patientTally,
    followUpEnd,
    earlierPage,
    pageTrouble: pageTroubleEvery(lookEveryMs),
    wasReset,
    isSendUnderWay,
    sendMessage: sendMessageBy(agentApi),
  };
}
