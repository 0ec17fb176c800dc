import {
  type Client,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { NoAnswerError, UpdateRefusedError } from './errors';
import { workersPolling } from './workers';

/** How long the server may take to tell which workers poll a queue. */
const WORKERS_TIMEOUT_MS = 5_000;

/** With no worker there is nobody to wait for, unless one is just starting. */
const NO_WORKER_TIMEOUT_MS = 2_000;

/** An update of a workflow that was running a moment ago. */
export interface UpdateOfRunning {
  readonly workflowId: string;
  readonly taskQueue: string;
  readonly name: string;
  readonly args: readonly unknown[];
  readonly timeoutMs: number;
  /** The error where it has ended in the meantime. */
  readonly ended: () => Promise<Error>;
}

/**
 * Executes an update and answers with what the workflow says.
 *
 * @throws UpdateRefusedError, NoAnswerError, and the error of `ended`
 */
export async function executeUpdate<T>(client: Client, update: UpdateOfRunning): Promise<T> {
  const { workflowId, taskQueue, name, args } = update;
  const workers = await workersPolling(client, taskQueue, WORKERS_TIMEOUT_MS);
  const timeoutMs =
    workers.length === 0 ? Math.min(update.timeoutMs, NO_WORKER_TIMEOUT_MS) : update.timeoutMs;
  try {
    const handle = client.workflow.getHandle(workflowId);
    return await client.withDeadline(Date.now() + timeoutMs, () =>
      handle.executeUpdate<T, [unknown, ...unknown[]]>(name, { args: args as [unknown, ...unknown[]] }),
    );
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError) {
      throw new UpdateRefusedError(workflowId, error.cause?.message ?? error.message);
    }
    if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) {
      throw new NoAnswerError(workflowId, taskQueue, workers.length, timeoutMs);
    }
    if (error instanceof WorkflowNotFoundError) throw await update.ended();
    throw error;
  }
}
