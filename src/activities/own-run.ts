import { Context } from '@temporalio/activity';
import { activityContext, decodeFromPayloadsAtIndex } from '../temporal/sdk-internals';
import type { FollowUpActivities, PendingDetails } from '../core/activities';
import type { InProcessPolls } from './in-process-polls';

/**
 * The local activity `pendingDetails`: the latest heartbeat details of a pending activity of this run. The workflow itself
 * can't know them: the start of an activity enters history only with its end, and a cancellation in its back-off brings no
 * details (measured). They are asked of the server, unless the activity is in this very process.
 */
export function pendingDetailsBy(inProcess: InProcessPolls): FollowUpActivities['pendingDetails'] {
  return async (activity) => {
    const { info, client } = Context.current();
    const { workflowId, runId } = info.workflowExecution ?? { workflowId: '', runId: '' };
    const here: unknown = activity === 'pollJob' ? inProcess.stop(runId) : undefined;
    if (here !== undefined) return here as PendingDetails[typeof activity];
    const { raw } = await client.workflow.getHandle(workflowId, runId).describe();
    const pending = raw.pendingActivities?.find(({ activityType }) => activityType?.name === activity);
    const payloads = pending?.heartbeatDetails?.payloads;
    if (!payloads || payloads.length === 0) return null;
    const { namespace, loadedDataConverter } = client.options;
    const context = activityContext(namespace, workflowId, pending.activityId ?? '');
    return decodeFromPayloadsAtIndex(loadedDataConverter, 0, payloads, context);
  };
}

/**
 * The local activity `ownRunId`. A workflow can't decide by its own run id whether it was reset: the new run replays what
 * the run before it did, and has to come to the same decisions. A local activity's answer is recorded.
 */
export function ownRunId(): Promise<string> {
  return Promise.resolve(Context.current().info.workflowExecution?.runId ?? '');
}
