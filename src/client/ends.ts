import { ApplicationFailure, CancelledFailure, TerminatedFailure, TimeoutFailure } from '@temporalio/client';
import { type FailureDetails, type FailureType, FAILURE_TYPES, type Receipt } from '../contract/result';

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
  return isObject(details) && 'job' in details && isReceipt(details.followUp);
}

/** Whether a value from history or memo is a receipt; of what this client relies on, each field is looked at. */
export function isReceipt(value: unknown): value is Receipt {
  return (
    isObject(value) &&
    isObject(value.delivery) &&
    typeof value.delivery.verdict === 'string' &&
    typeof value.delivery.sends === 'number' &&
    typeof value.polls === 'number' &&
    isObject(value.observed)
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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
