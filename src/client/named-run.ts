import {
  type Client,
  WorkflowContinuedAsNewError,
  type WorkflowExecutionDescription,
  type WorkflowHandle,
} from '@temporalio/client';
import { describeWorkflow, getFirstRunId } from '../temporal/workflow-executions';

/**
 * The maximum age of the description of an earlier run. A client that was suspended must not start a run because of an older
 * description.
 */
export const MAX_DESCRIPTION_AGE_MS = 10_000;

/**
 * A run of a follow-up or a batch, from a start or a retry to its end. The run has the ID of its first Temporal run. Temporal gives
 * another run ID to the run that continues it as new and to the run of a reset, but both belong to the same named run.
 */
export interface NamedRun {
  readonly workflowId: string;
  /** The run ID of the first Temporal run, or of any later Temporal run of the same named run. Undefined for the latest run. */
  readonly runId?: string | undefined;
}

/** Describes the last Temporal run of a named run; null if the run does not exist. */
export async function describeNamedRun(
  client: Client,
  { workflowId, runId }: NamedRun,
): Promise<WorkflowExecutionDescription | null> {
  const latest = await describeWorkflow(client, workflowId);
  if (latest === null || runId === undefined) return latest;
  if (getFirstRunId(latest) === runId || latest.runId === runId) return latest;
  // A later retry started another run, or `runId` names a Temporal run that was continued.
  for (let next: string | undefined = runId; ;) {
    const found: WorkflowExecutionDescription | null =
      next === latest.runId ? latest : await describeWorkflow(client, workflowId, next);
    if (found === null) return null;
    next = await readNextRunId(client, found);
    if (next === undefined) return found;
  }
}

/** Returns the ID of the Temporal run that continues a run of the same named run. Undefined if no run continues it. */
async function readNextRunId(
  client: Client,
  { workflowId, runId, status, raw }: WorkflowExecutionDescription,
): Promise<string | undefined> {
  // This ID points to the run of the latest reset.
  const resetRunId = raw.workflowExtendedInfo?.resetRunId;
  if (resetRunId) return resetRunId;
  if (status.name !== 'CONTINUED_AS_NEW') return undefined;
  const handle = client.workflow.getHandle(workflowId, runId, { followRuns: false });
  const end: unknown = await handle.result().catch((error: unknown) => error);
  if (end instanceof WorkflowContinuedAsNewError) return end.newExecutionRunId;
  throw end;
}

/**
 * Returns a handle whose updates and cancellations the Temporal server rejects as soon as the latest run belongs to another named run.
 */
export function getHandleOfRun(
  client: Client,
  run: Pick<WorkflowExecutionDescription, 'workflowId' | 'runId' | 'raw'>,
): WorkflowHandle {
  return client.workflow.getHandle(run.workflowId, undefined, { firstExecutionRunId: getFirstRunId(run) });
}
