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
import { getFirstRunId } from '../temporal/workflow-executions';
import { describeFollowUp, findFollowUp } from './description';
import {
  followUpFailureError,
  FollowUpCancelledError,
  FollowUpTerminatedError,
  notFoundError,
} from './errors';
import type { NamedRun } from './named-run';

/** The interval of further attempts. The connection has already retried the call for about 20 s. */
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
 * Waits for the result of a named run of a follow-up. The wait continues if the named run continues as new or is reset, and if the
 * connection fails. A retry by another client starts another named run, whose result is not awaited.
 *
 * @param run if it has no run ID, the named run that is the latest at the start of the wait
 */
export function awaitResult(client: Client, run: NamedRun, signal: AbortSignal): Promise<FollowUpResult> {
  let { runId } = run;
  return retryWhileUnavailable(signal, async () => {
    // A reset does not reopen an ended Temporal run, but makes a new one. Therefore, the last Temporal run is awaited.
    const last = await findFollowUp(client, { ...run, runId });
    runId ??= getFirstRunId(last);
    return fetchResult(client, { ...run, runId }, signal, last.runId);
  });
}

async function fetchResult(
  client: Client,
  run: NamedRun,
  signal: AbortSignal,
  awaitedRunId: string,
): Promise<FollowUpResult> {
  const { workflowId } = run;
  try {
    const result: unknown = await client.workflow.getHandle(workflowId, awaitedRunId).result();
    if (isFollowUpResult(result)) return result;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError)
      throw notFoundError('follow-up', workflowId, client.options.namespace);
    if (!(error instanceof WorkflowFailedError)) throw error;
    const { state, receipt, runId } = await describeFollowUp(client, run);
    // A reset terminates the awaited Temporal run, and the follow-up continues in a new one.
    if (error.cause instanceof TerminatedFailure && state !== 'terminated') {
      await sleep(RETRY_INTERVAL_MS, undefined, { signal });
      return fetchResult(client, run, signal, runId);
    }
    throw resultError(workflowId, error.cause, receipt);
  }
  await findFollowUp(client, run);
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
