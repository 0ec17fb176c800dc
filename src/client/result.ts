import {
  isReceipt,
  FAILURE_TYPES,
  type FailureDetails,
  type FailureType,
  type FollowUpResult,
  type Receipt,
} from '../core/result';
import { isRecord } from '../core/field-reader';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ApplicationFailure,
  CancelledFailure,
  type Client,
  TerminatedFailure,
  TimeoutFailure,
  WorkflowFailedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { isTransient } from '../temporal/grpc-status';
import { describeFollowUp } from './description';
import { FollowUpNotFoundError } from './errors';

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

/** How a follow-up can end without a job. The message says whether anything was sent, where that is known. */
export abstract class FollowUpEnd extends Error {
  constructor(
    readonly workflowId: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Thrown when a follow-up ended in one of its typed failures. */
export class FollowUpError extends FollowUpEnd {
  override readonly name = 'FollowUpError';

  constructor(
    workflowId: string,
    readonly type: FailureType,
    message: string,
    /** The last job that was seen, the receipt, and the service's own words. */
    readonly details: FailureDetails,
  ) {
    super(workflowId, message);
  }
}

/** Thrown when a follow-up was cancelled. The agent itself goes on: the service has no operation to stop it. */
export class FollowUpCancelledError extends FollowUpEnd {
  override readonly name = 'FollowUpCancelledError';

  constructor(
    workflowId: string,
    /** Null where the follow-up could leave none. */
    readonly receipt: Receipt | null,
  ) {
    super(
      workflowId,
      `The follow-up was cancelled. ${receipt === null ? 'It left no receipt: whether the message was sent is in its history.' : sentInWords(receipt)}`,
    );
  }
}

/** Thrown when somebody terminated the workflow: it could not say whether the message was sent. */
export class FollowUpTerminatedError extends FollowUpEnd {
  override readonly name = 'FollowUpTerminatedError';

  constructor(
    workflowId: string,
    readonly reason: string,
  ) {
    super(
      workflowId,
      `The workflow was terminated (${reason}); whether the message was sent is in its history.`,
    );
  }
}

/** Thrown when the workflow exceeded a timeout that its caller had set on it; follow-ups have none by themselves. */
export class FollowUpTimedOutError extends FollowUpEnd {
  override readonly name = 'FollowUpTimedOutError';

  constructor(workflowId: string) {
    super(
      workflowId,
      'The workflow exceeded a timeout set by its caller; whether the message was sent is in its history.',
    );
  }
}

/** Thrown when a workflow ended in a failure or with a result that no follow-up has: a bug, or another program's. */
export class UnexpectedFailureError extends FollowUpEnd {
  override readonly name = 'UnexpectedFailureError';

  constructor(workflowId: string, message: string, options?: ErrorOptions) {
    super(workflowId, `The workflow ended as no follow-up does: ${message}`, options);
  }
}

/** The end that the cause of a `WorkflowFailedError` tells of. */
export function endOf(workflowId: string, cause: Error | undefined, receipt: Receipt | null): FollowUpEnd {
  if (cause instanceof CancelledFailure) return new FollowUpCancelledError(workflowId, receipt);
  if (cause instanceof TerminatedFailure) return new FollowUpTerminatedError(workflowId, cause.message);
  if (cause instanceof TimeoutFailure) return new FollowUpTimedOutError(workflowId);
  if (cause instanceof ApplicationFailure) {
    const type = FAILURE_TYPES.find((known) => known === cause.type);
    const details: unknown = cause.details?.[0];
    if (type !== undefined && isFailureDetails(details)) {
      return new FollowUpError(workflowId, type, cause.message, details);
    }
  }
  return new UnexpectedFailureError(workflowId, cause?.message ?? 'a failure without a cause', { cause });
}

function isFailureDetails(details: unknown): details is FailureDetails {
  return isRecord(details) && 'job' in details && isReceipt(details.followUp);
}

function sentInWords({ delivery }: Receipt): string {
  switch (delivery.verdict) {
    case 'not-sent':
      return 'Nothing was sent.';
    case 'accepted':
      return 'The message had been accepted; the agent itself goes on.';
    case 'rejected':
      return 'The service had rejected the message.';
    case 'unknown':
      return 'Whether the message arrived is unknown; if it did, the agent itself goes on.';
  }
}
