import { Context } from '@temporalio/activity';
import { decodeFromPayloadsAtIndex } from '@temporalio/common/lib/internal-non-workflow';
import type { FollowUpActivities, Tally } from '../contract/activities';

const PATIENT_READ: keyof FollowUpActivities = 'getJobPatiently';

/**
 * The local activity `patientTally`: asks the server what the patient read of this run has counted. A cancellation in
 * its back-off tells the workflow nothing of it (measured), so that it is asked for before.
 */
export async function patientTally(): Promise<Tally | null> {
  const { info, client } = Context.current();
  const { workflowId, runId } = info.workflowExecution ?? { workflowId: '', runId: '' };
  const { raw } = await client.workflow.getHandle(workflowId, runId).describe();
  const pending = raw.pendingActivities?.find(({ activityType }) => activityType?.name === PATIENT_READ);
  const payloads = pending?.heartbeatDetails?.payloads;
  if (!payloads || payloads.length === 0) return null;
  const { namespace, loadedDataConverter } = client.options;
  const context = { type: 'activity', namespace, workflowId, isLocal: false } as const;
  return decodeFromPayloadsAtIndex<Tally>(loadedDataConverter, 0, payloads, context);
}
