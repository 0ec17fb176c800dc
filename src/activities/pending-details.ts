import { Context } from '@temporalio/activity';
import { decodeFromPayloadsAtIndex } from '@temporalio/common/lib/internal-non-workflow';
import type { FollowUpActivities } from '../contract/activities';

/**
 * The local activity `pendingDetails`: asks the server for the latest heartbeat of a pending activity of this run. The
 * workflow itself can't know it: the start of an activity enters history only with its end, and a cancellation in its
 * back-off brings no details (measured).
 */
export const pendingDetails: FollowUpActivities['pendingDetails'] = async (activity) => {
  const { info, client } = Context.current();
  const { workflowId, runId } = info.workflowExecution ?? { workflowId: '', runId: '' };
  const { raw } = await client.workflow.getHandle(workflowId, runId).describe();
  const pending = raw.pendingActivities?.find(({ activityType }) => activityType?.name === activity);
  const payloads = pending?.heartbeatDetails?.payloads;
  if (!payloads || payloads.length === 0) return null;
  const { namespace, loadedDataConverter } = client.options;
  const context = {
    type: 'activity',
    namespace,
    workflowId,
    activityId: pending?.activityId ?? '',
    isLocal: false,
  } as const;
  return decodeFromPayloadsAtIndex(loadedDataConverter, 0, payloads, context);
};
