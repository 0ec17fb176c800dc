import { Context, heartbeat } from '@temporalio/activity';
import type { AgentApi } from '../agent-api/client';
import type { FollowUpActivities, NoticeActivities, WorkerSettings } from '../core/activities';
import { singleLine } from '../core/text';
import { pendingActivity } from '../temporal/sdk-internals';
import { ownRun } from './attempt';
import type { BatchActivities } from '../core/batch/state';
import { closeChunks, runItems } from './batch/run-items';
import { followUpResult } from './follow-up-result';
import { type InProcessOptions, InProcessPolls } from './in-process-polls';
import { measured } from './measured';
import { type NotifyOptions, postNoticeBy } from './post-notice';
import { pollJobBy } from './poll-job';
import { sendMessageBy } from './send-message';
import { awaitEnd, takeTurn } from './turn';

export function createActivities(
  agentApi: AgentApi,
  settings: WorkerSettings,
  inProcess: InProcessOptions,
  notify?: NotifyOptions,
): FollowUpActivities & BatchActivities & Partial<NoticeActivities> {
  const polls = new InProcessPolls(inProcess);
  const api = measured(agentApi);
  return {
    workerSettings: () => Promise.resolve({ ...settings, ...(notify && { notify: true }) }),
    getJob: getJobBy(api),
    pollJob: pollJobBy(api, polls),
    pendingDetails: pendingDetailsBy(polls),
    followUpResult,
    takeTurn,
    awaitEnd,
    runItems,
    closeChunks,
    sendMessage: sendMessageBy(api),
    ...(notify === undefined ? {} : { postNotice: postNoticeBy(notify) }),
  };
}

/** Its heartbeat time-out is 15 s. */
const HEARTBEAT_EVERY_MS = 5_000;

function getJobBy(agentApi: AgentApi): FollowUpActivities['getJob'] {
  return async ({ insist = false, ...address }) => {
    const beat = setInterval(heartbeat, HEARTBEAT_EVERY_MS);
    try {
      return await agentApi.getJob(address, { insist });
    } finally {
      clearInterval(beat);
    }
  };
}

/** A cancellation in an activity's back-off brings no details (measured). */
function pendingDetailsBy(inProcess: InProcessPolls): FollowUpActivities['pendingDetails'] {
  return async (activity) => {
    const { client } = Context.current();
    const { workflowId, runId } = ownRun();
    const here = activity === 'pollJob' ? inProcess.stop(runId) : undefined;
    if (here !== undefined) return { details: here, started: true, failure: null };
    const description = await client.workflow.getHandle(workflowId, runId).describe();
    const pending = await pendingActivity(client, description, activity);
    const failure = pending?.lastFailure ? singleLine(pending.lastFailure.message ?? '', 300) : null;
    return { details: pending?.details ?? null, started: pending?.isStarted ?? false, failure };
  };
}
