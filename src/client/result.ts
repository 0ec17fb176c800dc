import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Client,
  TerminatedFailure,
  WorkflowFailedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import type { FollowUpResult } from '../contract/result';
import { describeFollowUp } from './description';
import { endOf, isReceipt, UnexpectedFailureError } from './ends';
import { FollowUpNotFoundError } from './errors';
import { isTransient } from './grpc-status';

export interface ResultOptions {
  /** Called at each trouble on the way to the server that the wait survives. */
  readonly onTrouble?: (error: unknown) => void;
}

/** Between two tries while the server is away; the SDK itself has tried for some 20 s before each. */
const PAUSE_MS = 1_000;

/**
 * Waits for the end of a follow-up: through restarts of the server, continued-as-new runs and resets, for as long as it
 * takes. Its deadline bounds it.
 *
 * @throws FollowUpEnd when it ended without a job; FollowUpNotFoundError
 */
export async function awaitResult(
  client: Client,
  workflowId: string,
  options: ResultOptions = {},
): Promise<FollowUpResult> {
  for (;;) {
    try {
      return await onceEnded(client, workflowId);
    } catch (error) {
      if (!(error instanceof RunReplaced) && !isTransient(error)) throw error;
      if (!(error instanceof RunReplaced)) options.onTrouble?.(error);
      await sleep(PAUSE_MS);
    }
  }
}

/** The run that was waited for is not the follow-up's last one. */
class RunReplaced extends Error {}

async function onceEnded(client: Client, workflowId: string): Promise<FollowUpResult> {
  try {
    const result: unknown = await client.workflow.getHandle(workflowId).result();
    if (isResult(result)) return result;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) {
      throw new FollowUpNotFoundError(workflowId, client.options.namespace);
    }
    if (!(error instanceof WorkflowFailedError)) throw error;
    const { state, receipt } = await describeFollowUp(client, workflowId);
    // A reset terminates the run that we wait for, and goes on in another one.
    if (error.cause instanceof TerminatedFailure && state !== 'terminated') throw new RunReplaced();
    throw endOf(workflowId, error.cause, receipt);
  }
  throw new UnexpectedFailureError(workflowId, 'its result is no job with a receipt');
}

function isResult(value: unknown): value is FollowUpResult {
  return (
    typeof value === 'object' &&
    value !== null &&
    'id' in value &&
    'status' in value &&
    typeof value.status === 'string' &&
    'followUp' in value &&
    isReceipt(value.followUp)
  );
}
