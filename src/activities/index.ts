import { heartbeat } from '@temporalio/activity';
import type { AgentApi } from '../agent-api/client';
import type { FollowUpActivities, NotificationActivities, WorkerSettings } from '../contract/activities';
import type { BatchActivities } from '../batch/memo';
import { closeChunks, runItems } from './batch/run-items';
import { followUpResult } from './follow-up-result';
import { releaseJobLock, waitForJobLock } from './job-lock';
import { withMetrics } from './agent-api-metrics';
import { countPollReads, stopSend } from './pending-activities';
import { type NotifyOptions, createPostNotification } from './post-notification';
import { createPollJob } from './poll-job';
import { createSendMessage } from './send-message';

/** Creates the activities of a worker. @param notify the receiver of notifications, if there is one */
export function createActivities(
  agentApi: AgentApi,
  settings: WorkerSettings,
  notify?: NotifyOptions,
): FollowUpActivities & BatchActivities & Partial<NotificationActivities> {
  const api = withMetrics(agentApi);
  return {
    workerSettings: () => Promise.resolve({ ...settings, ...(notify && { notify: true }) }),
    getJob: createGetJob(api),
    pollJob: createPollJob(api),
    countPollReads,
    sendMessage: createSendMessage(api),
    stopSend,
    waitForJobLock,
    releaseJobLock,
    followUpResult,
    runItems,
    closeChunks,
    ...(notify === undefined ? {} : { postNotification: createPostNotification(notify) }),
  };
}

/** The heartbeat interval of a read, which is a third of its heartbeat timeout. */
const HEARTBEAT_INTERVAL_MS = 5_000;

function createGetJob(agentApi: AgentApi): FollowUpActivities['getJob'] {
  return async (address) => {
    const timer = setInterval(heartbeat, HEARTBEAT_INTERVAL_MS);
    try {
      return await agentApi.getJob(address);
    } finally {
      clearInterval(timer);
    }
  };
}
