import { type Client, type WorkflowExecutionInfo, WorkflowNotFoundError } from '@temporalio/client';
import { keywordKey } from '../temporal/search-attributes';
import { FOLLOW_UP_WORKFLOW, MEMO_RECEIPT, type SearchAttributeName } from '../core/names';
import { type Receipt, isReceipt } from '../core/result';
import { type RunState, stateOf } from '../temporal/existing-run';
import { followUpNotFound } from './errors';

/** What the Temporal server knows of a follow-up without asking a worker. */
export interface FollowUpDescription {
  readonly workflowId: string;
  readonly runId: string;
  readonly state: RunState;
  readonly startedAt: string;
  /** Null while it runs. */
  readonly endedAt: string | null;
  readonly taskQueue: string;
  /** The search attribute; it is set on transitions, hence may be behind by a moment. Null where it is not set. */
  readonly phase: string | null;
  readonly jobStatus: string | null;
  readonly projectId: string | null;
  readonly jobId: string | null;
  /** Left by a cancelled follow-up only; a list does not look for it. */
  readonly receipt: Receipt | null;
}

/** @throws NotFoundError when there is no such workflow, or it is not a follow-up */
export async function describeFollowUp(client: Client, workflowId: string): Promise<FollowUpDescription> {
  const { namespace } = client.options;
  try {
    const info = await client.workflow.getHandle(workflowId).describe();
    if (info.type !== FOLLOW_UP_WORKFLOW) throw followUpNotFound(workflowId, namespace, info.type);
    return descriptionOf(info);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) throw followUpNotFound(workflowId, namespace);
    throw error;
  }
}

export function descriptionOf(info: Omit<WorkflowExecutionInfo, 'raw'>): FollowUpDescription {
  const attribute = (name: SearchAttributeName): string | null =>
    info.typedSearchAttributes.get(keywordKey(name)) ?? null;
  const receipt = info.memo?.[MEMO_RECEIPT];
  return {
    workflowId: info.workflowId,
    runId: info.runId,
    state: stateOf(info.status.name),
    startedAt: info.startTime.toISOString(),
    endedAt: info.closeTime?.toISOString() ?? null,
    taskQueue: info.taskQueue,
    phase: attribute('FollowUpPhase'),
    jobStatus: attribute('AgentJobStatus'),
    projectId: attribute('AgentProject'),
    jobId: attribute('AgentJob'),
    receipt: isReceipt(receipt) ? receipt : null,
  };
}
