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

/** The SDK itself has tried for some 20 s before. */
const RETRY_INTERVAL_MS = 1_000;

/** Repeats a call until the server answers. */
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

/** Waits for the end, through continued-as-new runs and resets too. */
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
    // A reset terminates the run that we wait for, and continues in another one.
    if (error.cause instanceof TerminatedFailure && state !== 'terminated') {
      await sleep(RETRY_INTERVAL_MS);
      return fetchResult(client, workflowId);
    }
    throw resultError(workflowId, error.cause, receipt);
  }
  await findFollowUp(client, workflowId);
  throw unexpectedFailureError(workflowId, 'its result is not a job with a receipt');
}

/** The error that a follow-up's result throws. @param receipt the receipt that a cancelled follow-up left */
export function resultError(
  workflowId: string,
  cause: Error | undefined,
  receipt: Receipt | null,
): FollowUpError {
  if (cause instanceof CancelledFailure)
    return new FollowUpCancelledError('CANCELLED', describeCancellation(receipt), { workflowId, receipt });
  const ended = (words: string) => `The workflow ${words}; ${DELIVERY_IN_HISTORY}`;
  if (cause instanceof TerminatedFailure) {
    const message = ended(`was terminated (${cause.message})`);
    return new FollowUpTerminatedError('TERMINATED', message, { workflowId });
  }
  if (cause instanceof TimeoutFailure)
    return new FollowUpError('WORKFLOW_TIMED_OUT', ended('exceeded a timeout set by its caller'), {
      workflowId,
    });
  const failure = cause && parseFollowUpFailure(cause);
  if (cause && failure)
    return followUpFailureError(failure.type, cause.message, { workflowId, details: failure.details });
  return unexpectedFailureError(workflowId, cause?.message ?? 'a failure without a cause', cause);
}

/** A bug, or another program's workflow. */
function unexpectedFailureError(workflowId: string, message: string, cause?: Error): FollowUpError {
  const text = `The workflow ended in a way that no follow-up does (${message}); ${DELIVERY_IN_HISTORY}`;
  return new FollowUpError('UNEXPECTED_FAILURE', text, { workflowId, cause });
}
