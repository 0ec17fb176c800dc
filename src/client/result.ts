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
import { type ErrorFacts, FollowUpError, type FollowUpErrorCode } from '../core/errors';
import { isRecord } from '../core/json';
import {
  FAILURE_TYPES,
  type FailureDetails,
  type FailureType,
  type FollowUpResult,
  isReceipt,
  type Receipt,
} from '../core/result';
import { isTransient } from '../temporal/grpc-status';
import { describeFollowUp } from './description';
import { followUpNotFound } from './errors';

/** Ends the waiting only: the follow-up, batch or schedule continues. */
export interface WaitOptions {
  /** When it is aborted, the call rejects with its reason. */
  readonly signal?: AbortSignal;
}

export interface ResultOptions extends WaitOptions {
  /** Called at each failed attempt to reach the server; the wait continues. */
  readonly onTrouble?: (error: unknown) => void;
}

/** Between two attempts while the server is away; the SDK itself has tried for some 20 s before each. */
const PAUSE_MS = 1_000;

/**
 * Repeats a call that waits for something on the server, until the server answers.
 *
 * @param isRetryable which errors are waited out; the others are thrown
 */
export async function waitThrough<T>(
  client: Client,
  call: () => Promise<T>,
  { signal, onTrouble }: ResultOptions,
  isRetryable: (error: unknown) => boolean = isTransient,
): Promise<T> {
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await (signal === undefined ? call() : client.withAbortSignal(signal, call));
    } catch (error) {
      signal?.throwIfAborted();
      if (!isRetryable(error)) throw error;
      if (isTransient(error)) onTrouble?.(error);
      await sleep(PAUSE_MS, undefined, signal === undefined ? {} : { signal });
    }
  }
}

/**
 * Waits for the end of a follow-up: through restarts of the server, continued-as-new runs and resets, for as long as it
 * takes. Its deadline bounds it.
 *
 * @throws FollowUpEndError when it ended without a job; NotFoundError
 */
export function awaitResult(
  client: Client,
  workflowId: string,
  options: ResultOptions = {},
): Promise<FollowUpResult> {
  const isRetryable = (error: unknown): boolean => error instanceof RunReplaced || isTransient(error);
  return waitThrough(client, () => onceEnded(client, workflowId), options, isRetryable);
}

/** The run that was waited for is not the follow-up's last one. */
class RunReplaced extends Error {}

async function onceEnded(client: Client, workflowId: string): Promise<FollowUpResult> {
  try {
    const result: unknown = await client.workflow.getHandle(workflowId).result();
    if (isResult(result)) return result;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) {
      throw followUpNotFound(workflowId, client.options.namespace);
    }
    if (!(error instanceof WorkflowFailedError)) throw error;
    const { state, receipt } = await describeFollowUp(client, workflowId);
    // A reset terminates the run that we wait for, and continues in another one.
    if (error.cause instanceof TerminatedFailure && state !== 'terminated') throw new RunReplaced();
    throw endOf(workflowId, error.cause, receipt);
  }
  throw unexpected(workflowId, 'its result is not a job with a receipt');
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

/** A follow-up that ended without a job. The message says whether anything was sent, where that is known. */
export class FollowUpEndError extends FollowUpError {
  declare readonly workflowId: string;

  constructor(code: FollowUpErrorCode, workflowId: string, message: string, facts: ErrorFacts = {}) {
    super(code, message, { workflowId, ...facts });
  }
}

const CODE_OF_FAILURE = {
  InvalidRequest: 'INVALID_REQUEST',
  FollowUpRejected: 'REJECTED',
  DeliveryUnknown: 'DELIVERY_UNKNOWN',
  DeadlineExceeded: 'DEADLINE_EXCEEDED',
  JobNotFound: 'JOB_NOT_FOUND',
} as const satisfies Record<FailureType, FollowUpErrorCode>;

/** Thrown when a follow-up ended in one of its typed failures. The classes below are its kinds. */
export class FollowUpFailedError extends FollowUpEndError {
  override readonly name: string = 'FollowUpFailedError';
  declare readonly receipt: Receipt;

  constructor(
    workflowId: string,
    readonly type: FailureType,
    message: string,
    /** The last job that was seen, the receipt, and the service's own words. */
    readonly details: FailureDetails,
  ) {
    super(CODE_OF_FAILURE[type], workflowId, message, { job: details.job, receipt: details.followUp });
  }
}

/** Thrown when the service refused the message, or the job was active and `whenActive` is `reject`. */
export class FollowUpRejectedError extends FollowUpFailedError {
  override readonly name = 'FollowUpRejectedError';
}

/** Thrown when nobody can tell whether the message arrived. */
export class DeliveryUnknownError extends FollowUpFailedError {
  override readonly name = 'DeliveryUnknownError';
}

/** Thrown when the deadline passed; the receipt says whether the message was sent. */
export class DeadlineExceededError extends FollowUpFailedError {
  override readonly name = 'DeadlineExceededError';
}

/** Thrown when the service has no such job, or has it no longer. */
export class JobNotFoundError extends FollowUpFailedError {
  override readonly name = 'JobNotFoundError';
}

const CLASS_OF_FAILURE: Readonly<Record<FailureType, typeof FollowUpFailedError>> = {
  InvalidRequest: FollowUpFailedError,
  FollowUpRejected: FollowUpRejectedError,
  DeliveryUnknown: DeliveryUnknownError,
  DeadlineExceeded: DeadlineExceededError,
  JobNotFound: JobNotFoundError,
};

/** Thrown when a follow-up was cancelled. The agent continues: the service has no operation to stop it. */
export class FollowUpCancelledError extends FollowUpEndError {
  override readonly name = 'FollowUpCancelledError';

  constructor(
    workflowId: string,
    /** Null if the follow-up could leave none. */
    receipt: Receipt | null,
  ) {
    super(
      'CANCELLED',
      workflowId,
      `The follow-up was cancelled. ${receipt === null ? 'It left no receipt: whether the message was sent is in its history.' : sentInWords(receipt)}`,
      { receipt },
    );
  }
}

/** Thrown when somebody terminated the workflow: it could not say whether the message was sent. */
export class FollowUpTerminatedError extends FollowUpEndError {
  override readonly name = 'FollowUpTerminatedError';

  constructor(
    workflowId: string,
    readonly reason: string,
  ) {
    super(
      'TERMINATED',
      workflowId,
      `The workflow was terminated (${reason}); whether the message was sent is in its history.`,
    );
  }
}

/** The workflow ended in a failure, or with a result, that no follow-up has: a bug, or another program's. */
function unexpected(workflowId: string, message: string, cause?: Error): FollowUpEndError {
  const text = `The workflow ended in a way that no follow-up does: ${message}`;
  return new FollowUpEndError('UNEXPECTED_FAILURE', workflowId, text, { cause });
}

/** The end of a follow-up by the cause of its `WorkflowFailedError`. */
function endOf(workflowId: string, cause: Error | undefined, receipt: Receipt | null): FollowUpEndError {
  if (cause instanceof CancelledFailure) return new FollowUpCancelledError(workflowId, receipt);
  if (cause instanceof TerminatedFailure) return new FollowUpTerminatedError(workflowId, cause.message);
  if (cause instanceof TimeoutFailure)
    return new FollowUpEndError(
      'TIMED_OUT',
      workflowId,
      'The workflow exceeded a timeout set by its caller; whether the message was sent is in its history.',
    );
  if (cause instanceof ApplicationFailure) {
    const type = FAILURE_TYPES.find((known) => known === cause.type);
    const details: unknown = cause.details?.[0];
    if (type !== undefined && isFailureDetails(details)) {
      return new CLASS_OF_FAILURE[type](workflowId, type, cause.message, details);
    }
  }
  return unexpected(workflowId, cause?.message ?? 'a failure without a cause', cause);
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
