import { Context } from '@temporalio/activity';
import type { FollowUpActivities } from '../contract/activities';

const SEND_ACTIVITY: keyof FollowUpActivities = 'sendMessage';

/** `PENDING_ACTIVITY_STATE_STARTED` of Temporal's API: a worker has taken the task up. */
const STARTED = 2;

/**
 * The activity `isSendUnderWay`: asks the server about the run that it belongs to. The workflow itself can't know it,
 * because the start of an activity enters history only with its end.
 */
export async function isSendUnderWay(): Promise<boolean> {
  const { info, client } = Context.current();
  const { workflowId, runId } = info.workflowExecution ?? { workflowId: '', runId: '' };
  const { raw } = await client.workflow.getHandle(workflowId, runId).describe();
  const pending = raw.pendingActivities ?? [];
  return pending.some(
    ({ activityType, state }) => activityType?.name === SEND_ACTIVITY && Number(state) === STARTED,
  );
}
