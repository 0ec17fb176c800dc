import { setTimeout as sleep } from 'node:timers/promises';
import {
  CancelledFailure,
  type Client,
  TerminatedFailure,
  TimeoutFailure,
  WorkflowFailedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { describeCancellation, parseFollowUpFailure, DELIVERY_IN_HISTORY } from '../contract/outcome';
import { FollowUpError } from '../contract/follow-up-error';
import { type FollowUpResult, isFollowUpResult, type Receipt } from '../contract/result';
import { isTransient } from '../temporal/grpc-status';
import { describeFollowUp, findFollowUp } from './description';
import {
  followUpFailureError,
  FollowUpCancelledError,
  FollowUpTerminatedError,
  notFoundError,
} from './errors';

/** The interval of further attempts. The SDK has already retried the call for about 20 s. */
const RETRY_INTERVAL_MS = 1_000;

/** Repeats a call until the Temporal server responds. @throws any error that is not transient */
export async function retryWhileUnavailable<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return await call();
    } catch (error) {
      if (!isTransient(error)) throw error;
      await sleep(RETRY_INTERVAL_MS, undefined, { signal });
    }
  }
}

/**
 * Waits for the result of a follow-up. The wait continues if the workflow continues as new or is reset, and if the connection
 * fails.
 */
export function awaitResult(client: Client, workflowId: string, signal: AbortSignal) {
  return retryWhileUnavailable(signal, () => fetchResult(client, workflowId));
}

async function fetchResult(client: Client, workflowId: string): Promise<FollowUpResult> {
  try {
    const result: unknown = await client.workflow.getHandle(workflowId).result();
    if (isFollowUpResult(result)) return result;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError)
      throw notFoundError('follow-up', workflowId, client.options.namespace);
    if (!(error instanceof WorkflowFailedError)) throw error;
    const { state, receipt } = await describeFollowUp(client, workflowId);
    // A reset terminates the awaited run, and the follow-up continues in a new run.
    if (error.cause instanceof TerminatedFailure && state !== 'terminated') {
      await sleep(RETRY_INTERVAL_MS);
      return fetchResult(client, workflowId);
    }
    throw resultError(workflowId, error.cause, receipt);
  }
  await findFollowUp(client, workflowId);
  throw unexpectedFailureError(workflowId, 'its result is not a job with a receipt');
}

/** Creates the error that `result` throws. @param receipt the receipt in the memo, which is used only for a cancelled follow-up */
export function resultError(
  workflowId: string,
  cause: Error | undefined,
  receipt: Receipt | null,
): FollowUpError {
  if (cause instanceof CancelledFailure)
    return new FollowUpCancelledError('CANCELLED', describeCancellation(receipt), { workflowId, receipt });
  const ended = (reason: string) => `The workflow ${reason}; ${DELIVERY_IN_HISTORY}`;
  if (cause instanceof TerminatedFailure) {
    const message = ended(`was terminated (${cause.message})`);
    return new FollowUpTerminatedError('TERMINATED', message, { workflowId });
  }
  if (cause instanceof TimeoutFailure)
    return new FollowUpError('WORKFLOW_TIMED_OUT', ended('exceeded a timeout that its caller set'), {
      workflowId,
    });
  const failure = cause && parseFollowUpFailure(cause);
  if (cause && failure)
    return followUpFailureError(failure.type, cause.message, { workflowId, details: failure.details });
  return unexpectedFailureError(workflowId, cause?.message ?? 'a failure without a cause', cause);
}

/** Creates the error for an end that only a bug or another program's workflow can cause. */
function unexpectedFailureError(workflowId: string, message: string, cause?: Error): FollowUpError {
  const text = `The workflow did not end with a valid follow-up result (${message}); ${DELIVERY_IN_HISTORY}`;
  return new FollowUpError('UNEXPECTED_FAILURE', text, { workflowId, cause });
}
