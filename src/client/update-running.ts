import {
  type Client,
  type WorkflowExecutionDescription,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { findGrpcError } from '../temporal/grpc-status';
import { listPollingWorkers } from '../temporal/raw-requests';
import { getFirstRunId, ignoreClosedWorkflow, type RunState } from '../temporal/workflow-executions';
import { withTimeout } from './call-runner';
import { waitTimeoutError, explainMissingResponse, updateRejectedError, wrongStateError } from './errors';
import { getHandleOfRun } from './named-run';

/** The run to which an update or a cancellation is sent. */
export interface UpdateTarget extends Pick<
  WorkflowExecutionDescription,
  'workflowId' | 'runId' | 'raw' | 'taskQueue'
> {
  readonly state: RunState;
  readonly startsAt?: string | null;
}

export interface WorkflowUpdate {
  readonly name: string;
  /** Makes the arguments from the description of the running workflow. @default no arguments */
  readonly args?: (found: UpdateTarget) => readonly unknown[];
}

/** Finds the run; with a run ID, the named run with this ID. @throws NotFoundError */
type FindTarget = (runId?: string) => Promise<UpdateTarget>;

/** The timeout of an update. `pollNow` waits for one request. A read of the job takes at most 30 s with the default timeout. */
const UPDATE_TIMEOUT_MS = 45_000;

/** The timeout of an update if no worker polls the task queue. The time is short, but a starting worker can still respond. */
export const NO_WORKER_TIMEOUT_MS = 2_000;

/**
 * Updates the named run that `find` returns. If a later named run is the latest when the update arrives, the Temporal server rejects
 * the update.
 *
 * @returns the result of the update, and the run that was updated
 * @throws WaitTimeoutError, FollowUpError `ALREADY_ENDED` or `UPDATE_REJECTED`, or an error of `find`
 */
export async function updateRunning(
  client: Client,
  find: FindTarget,
  { name, args = () => [] }: WorkflowUpdate,
): Promise<{ readonly run: UpdateTarget; readonly result: unknown }> {
  const run = await find();
  const { workflowId, taskQueue, state, startsAt = null } = run;
  if (state !== 'running') throw wrongStateError(workflowId, state);
  // On Temporal server 1.32.0, every update ends a start delay, even a rejected update. The message would be sent now.
  if (startsAt !== null)
    throw updateRejectedError(workflowId, `the follow-up has not started; it starts at ${startsAt}`);
  const workers = (await listPollingWorkers(client, taskQueue))?.length ?? null;
  const limitMs = workers === 0 ? NO_WORKER_TIMEOUT_MS : UPDATE_TIMEOUT_MS;
  try {
    const options = { args: args(run) as [unknown] };
    const update = () => getHandleOfRun(client, run).executeUpdate<unknown, [unknown]>(name, options);
    return { run, result: await withTimeout(client, limitMs, update) };
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError)
      throw updateRejectedError(workflowId, error.cause?.message ?? error.message);
    const { status, text = '' } = findGrpcError(error) ?? {};
    // The Temporal server rejects an update after 2,000 updates in one run, or if the worker that processed the update died.
    const isRejected = status === 'FAILED_PRECONDITION';
    if (isRejected && /\blimit\b/i.test(text)) throw updateRejectedError(workflowId, text);
    if (isRejected || error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)
      throw waitTimeoutError(
        { workflowId },
        isRejected ? null : limitMs,
        explainMissingResponse(taskQueue, workers),
      );
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    throw wrongStateError(workflowId, (await find(getFirstRunId(run))).state);
  }
}

/** Cancels the named run that `find` returns. @throws FollowUpError `ALREADY_ENDED`, or an error of `find` */
export async function cancelRun(client: Client, find: FindTarget): Promise<void> {
  const run = await find();
  const { workflowId, state } = run;
  // Temporal server 1.32.0 silently accepts the cancellation of a closed workflow, so the state is checked first.
  if (state !== 'running') throw wrongStateError(workflowId, state);
  await getHandleOfRun(client, run)
    .cancel()
    .catch(async (error: unknown) => {
      ignoreClosedWorkflow(error);
      throw wrongStateError(workflowId, (await find(getFirstRunId(run))).state);
    });
}
