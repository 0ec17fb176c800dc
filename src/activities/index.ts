import { heartbeat } from '@temporalio/activity';
import type { AgentApi } from '../agent-api/client';
import type { FollowUpActivities, WorkerSettings } from '../core/activities';
import { earlierPage, followUpEnd, followUpEnds, LOOK_EVERY_MS, pageTroubleEvery } from './batch';
import { type InProcessOptions, InProcessPolls } from './in-process-polls';
import { ownRunId, pendingDetailsBy } from './own-run';
import { pollJobBy } from './poll-job';
import { sendMessageBy } from './send-message';

export { LONGEST_WAIT_MS } from './in-process-polls';
export { POLL_LIMIT_MS } from './poll-job';

/**
 * The activities of a worker, bound to its agent service and its configuration.
 *
 * @param lookEveryMs how often the pages of a batch look whether all is there, in milliseconds
 */
export function createActivities(
  agentApi: AgentApi,
  settings: Omit<WorkerSettings, 'lookEveryMs'>,
  inProcess: InProcessOptions,
  lookEveryMs = LOOK_EVERY_MS,
): FollowUpActivities {
  const polls = new InProcessPolls(inProcess);
  return {
    workerSettings: () => Promise.resolve({ ...settings, lookEveryMs }),
    getJob: getJobBy(agentApi),
    pollJob: pollJobBy(agentApi, polls),
    pendingDetails: pendingDetailsBy(polls),
    followUpEnd,
    followUpEnds,
    earlierPage,
    pageTrouble: pageTroubleEvery(lookEveryMs),
    ownRunId,
    sendMessage: sendMessageBy(agentApi),
  };
}

/** A read that takes longer than this tells the server that its worker lives; its heartbeat time-out is 15 s. */
const HEARTBEAT_EVERY_MS = 5_000;

/** The activity `getJob`: one GET. Trouble on the wire is its result, and no failure of the activity. */
function getJobBy(agentApi: AgentApi): FollowUpActivities['getJob'] {
  return async (address) => {
    const beat = setInterval(heartbeat, HEARTBEAT_EVERY_MS);
    try {
      return await agentApi.getJob(address);
    } finally {
      clearInterval(beat);
    }
  };
}
