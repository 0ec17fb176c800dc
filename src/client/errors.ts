import { type ErrorFacts, FollowUpError, type FollowUpErrorCode } from '../contract/follow-up-error';
import { type Problem, problemTexts } from '../contract/checks';
import type { FailureType, Receipt } from '../contract/result';
import { findGrpcError } from '../temporal/grpc-status';

/** Thrown when an input is invalid, before anything is started or changed. */
export class InvalidRequestError extends FollowUpError {
  constructor(readonly problems: readonly Problem[]) {
    super('INVALID_REQUEST', `Invalid request: ${problemTexts(problems)}. Nothing was started or changed.`);
  }
}

export function invalidFieldError(field: string, text: string): InvalidRequestError {
  return new InvalidRequestError([{ field, text }]);
}

/** @throws InvalidRequestError if there is a problem */
export function throwIfProblems(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new InvalidRequestError(problems);
}

/** Thrown when another message, batch or schedule has the same ID. Nothing was started or changed. */
export class ConflictError extends FollowUpError {}

/** Thrown when the namespace has no follow-up, batch or schedule with an ID. */
export class NotFoundError extends FollowUpError {}

/** Thrown when it is unknown whether a call started a follow-up or batch. If the call is repeated, it sends nothing twice. */
export class StartUnconfirmedError extends FollowUpError {}

/** Thrown when no worker responded in time, or the `timeout` of a call passed. A started follow-up or batch continues. */
export class WaitTimeoutError extends FollowUpError {}

/** How far a call got. */
export interface CallState {
  workflowId?: string | undefined;
  /** The kind of workflow that the call starts, while it is unknown whether the workflow was started. */
  unconfirmed?: 'follow-up' | 'batch' | undefined;
}

/** The error of a call that ended before its response. @param reason the reason, as a sentence */
export function interruptedCallError(
  code: 'WAIT_TIMEOUT' | 'CLIENT_CLOSED' | 'UNREACHABLE',
  reason: string,
  { workflowId, unconfirmed }: CallState,
  cause?: unknown,
): FollowUpError {
  if (unconfirmed !== undefined) {
    const subject = `the ${unconfirmed} ${workflowId ?? ''}`.trim();
    const message = `${reason} It is not confirmed that ${subject} was started. Repeat the same call; it sends nothing twice.`;
    return new StartUnconfirmedError('START_UNCONFIRMED', message, { workflowId, cause });
  }
  const ErrorClass = code === 'WAIT_TIMEOUT' ? WaitTimeoutError : FollowUpError;
  return new ErrorClass(code, reason, { workflowId, cause });
}

/** Thrown when the agent service rejected the message, or the job was active and `whenActive` is `reject`. */
export class FollowUpRejectedError extends FollowUpError {}

/** Thrown when it is unknown whether the message arrived. */
export class DeliveryUnknownError extends FollowUpError {}

/** Thrown when the deadline passed. */
export class DeadlineExceededError extends FollowUpError {}

/** Thrown when the agent service does not have the job, or no longer has it. */
export class JobNotFoundError extends FollowUpError {}

/** Thrown when a follow-up was cancelled. The agent continues. */
export class FollowUpCancelledError extends FollowUpError {}

/** Thrown when a client terminated the workflow. Only its history shows whether the message was sent. */
export class FollowUpTerminatedError extends FollowUpError {}

const ERROR_BY_FAILURE_TYPE: Readonly<Record<FailureType, [typeof FollowUpError, FollowUpErrorCode]>> = {
  InvalidRequest: [FollowUpError, 'INVALID_REQUEST'],
  FollowUpRejected: [FollowUpRejectedError, 'REJECTED'],
  DeliveryUnknown: [DeliveryUnknownError, 'DELIVERY_UNKNOWN'],
  DeadlineExceeded: [DeadlineExceededError, 'DEADLINE_EXCEEDED'],
  JobNotFound: [JobNotFoundError, 'JOB_NOT_FOUND'],
};

export function followUpFailureError(type: FailureType, message: string, facts: ErrorFacts): FollowUpError {
  const [ErrorClass, code] = ERROR_BY_FAILURE_TYPE[type];
  return new ErrorClass(code, message, facts);
}

export function batchConflictError(batchId: string): ConflictError {
  return new ConflictError(
    'CONFLICT',
    `The batch ${JSON.stringify(batchId)} exists with different items, options or order. Nothing was started. ` +
      'Give the same input to continue it, or another batch id for another batch.',
  );
}

export function scheduleConflictError(scheduleId: string): ConflictError {
  return new ConflictError(
    'CONFLICT',
    `The schedule ${JSON.stringify(scheduleId)} exists. Nothing was changed. Use update to change it, or choose another ID.`,
  );
}

/** @param cause the Temporal server's response to the last attempt */
export function scheduleUpdateConflictError(scheduleId: string, cause: unknown): ConflictError {
  const message =
    `Other clients are changing the schedule ${JSON.stringify(scheduleId)} at the same time ` +
    `(${findGrpcError(cause)?.text ?? 'conflict'}). Nothing was changed. Repeat the update.`;
  return new ConflictError('CONFLICT', message, { cause });
}

/** @param found what has this id instead, if anything has */
export function notFoundError(
  what: 'follow-up' | 'batch' | 'schedule',
  id: string,
  namespace: string,
  found?: string,
): NotFoundError {
  // A caller may have given the request ID instead of the workflow ID.
  const hasForm = what !== 'follow-up' || id.startsWith('follow-up:');
  const form = hasForm ? '' : ' (most ids are follow-up:PROJECT:JOB:REQUEST_ID)';
  const reason =
    found ?? `it may be misspelt${form}, deleted, in another namespace, or older than its retention`;
  const message = `There is no ${what} ${JSON.stringify(id)} in the namespace ${namespace}: ${reason}.`;
  return new NotFoundError('NOT_FOUND', message, what === 'follow-up' ? { workflowId: id } : {});
}

/** @param reason why no response came, if that is known, such as {@link explainMissingResponse} */
export function waitTimeoutError(reached: CallState, waitedMs: number, reason?: string): FollowUpError {
  const { workflowId, unconfirmed } = reached;
  const isStarted = workflowId !== undefined && unconfirmed === undefined;
  const subject = isStarted ? `${subjectFromId(workflowId)} did not respond` : 'There was no response';
  const suffix = reason === undefined ? '' : `: ${reason}`;
  return interruptedCallError('WAIT_TIMEOUT', `${subject} within ${waitedMs / 1_000} s${suffix}.`, reached);
}

/** Why no worker responds. @param workers the number of workers that poll the task queue */
export function explainMissingResponse(taskQueue: string, workers: number): string {
  const queue = `the task queue ${JSON.stringify(taskQueue)}`;
  if (workers === 0) return `no worker polls ${queue}; start one and try again`;
  return `the worker on ${queue} is busy, waits for the agent service, or has just stopped; try again`;
}

export function wrongStateError(workflowId: string, state: string): FollowUpError {
  const isRunning = state === 'running';
  const message = `${subjectFromId(workflowId)} ${isRunning ? 'is still running' : `has already ended: ${state}`}.`;
  return new FollowUpError(isRunning ? 'STILL_RUNNING' : 'ALREADY_ENDED', message, { workflowId, state });
}

export function updateRejectedError(workflowId: string, reason: string): FollowUpError {
  const message = `${subjectFromId(workflowId)} refuses: ${reason.replace(/\.$/, '')}.`;
  return new FollowUpError('UPDATE_REJECTED', message, { workflowId });
}

/** @param reason whether the message was sent, in words */
export function retryNotAllowedError(
  workflowId: string,
  reason: string,
  receipt: Receipt | null,
): FollowUpError {
  const message = `${subjectFromId(workflowId)} can't be retried. ${reason} To send its message once more, give it a new requestId.`;
  return new FollowUpError('RETRY_NOT_ALLOWED', message, { workflowId, receipt });
}

function subjectFromId(workflowId: string): string {
  return `The ${workflowId.startsWith('follow-up-batch:') ? 'batch' : 'follow-up'} ${workflowId}`;
}
