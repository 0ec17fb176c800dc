import { type ErrorFacts, FollowUpError, type FollowUpErrorCode } from '../contract/follow-up-error';
import { type Problem, problemTexts } from '../contract/checks';
import type { FailureType, Receipt } from '../contract/result';
import { pluralize } from '../contract/text';
import { findGrpcError } from '../temporal/grpc-status';

/** Thrown when an input is invalid, before anything is started or changed. */
export class InvalidRequestError extends FollowUpError {
  declare readonly code: 'INVALID_REQUEST';

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

/**
 * Thrown when another message, batch or schedule has the same ID, or when other clients change the schedule at the same time.
 * Nothing was started or changed.
 */
export class ConflictError extends FollowUpError {
  declare readonly code: 'CONFLICT';
}

/** Thrown when the namespace has no follow-up, batch or schedule with the given ID. */
export class NotFoundError extends FollowUpError {
  declare readonly code: 'NOT_FOUND';
}

/**
 * Thrown when it is unknown whether a call started a follow-up or batch. A repeated call sends no message twice, except for a
 * batch's `retry` with `includeUnknown`.
 */
export class StartUnconfirmedError extends FollowUpError {
  declare readonly code: 'START_UNCONFIRMED';
}

/** Thrown when no worker responded in time, or the `timeout` of a call passed. A started follow-up or batch continues. */
export class WaitTimeoutError extends FollowUpError {
  declare readonly code: 'WAIT_TIMEOUT';
}

/** The progress of a call. */
export interface CallState {
  workflowId?: string | undefined;
  /** The kind of workflow that the call starts, while it is unknown whether the workflow was started. */
  unconfirmedStart?: 'follow-up' | 'batch' | undefined;
  /** Whether a repetition of the call sends messages of unknown delivery again. */
  includesUnknown?: boolean | undefined;
}

/** Creates the error of a call that ended before its response. @param reason why the call ended, as a sentence */
export function interruptedCallError(
  code: 'WAIT_TIMEOUT' | 'CLIENT_CLOSED' | 'UNREACHABLE',
  reason: string,
  { workflowId, unconfirmedStart, includesUnknown }: CallState,
  cause?: unknown,
): FollowUpError {
  if (unconfirmedStart !== undefined) {
    const subject = `the ${unconfirmedStart} ${workflowId ?? ''}`.trim();
    const advice = includesUnknown
      ? "Before you repeat the call, check the batch's progress, because a repeated call sends the messages of unknown delivery again."
      : 'Repeat the same call; no message is sent twice.';
    const message = `${reason} It is unknown whether ${subject} was started. ${advice}`;
    return new StartUnconfirmedError('START_UNCONFIRMED', message, { workflowId, cause });
  }
  const ErrorClass = code === 'WAIT_TIMEOUT' ? WaitTimeoutError : FollowUpError;
  return new ErrorClass(code, reason, { workflowId, cause });
}

/**
 * Thrown when the agent service rejected the message or the first read, when the job was not idle and `whenActive` is `reject`, or when
 * the worker's configuration is wrong.
 */
export class FollowUpRejectedError extends FollowUpError {
  declare readonly code: 'REJECTED';
}

/** Thrown when it is unknown whether the message arrived. */
export class DeliveryUnknownError extends FollowUpError {
  declare readonly code: 'DELIVERY_UNKNOWN';
}

/** Thrown when the deadline passed. */
export class DeadlineExceededError extends FollowUpError {
  declare readonly code: 'DEADLINE_EXCEEDED';
}

/** Thrown when the agent service does not have the job, or no longer has it. */
export class JobNotFoundError extends FollowUpError {
  declare readonly code: 'JOB_NOT_FOUND';
}

/** Thrown when a follow-up was cancelled. The agent continues. */
export class FollowUpCancelledError extends FollowUpError {
  declare readonly code: 'CANCELLED';
}

/** Thrown when a client terminated the workflow. Only its history shows whether the message was sent. */
export class FollowUpTerminatedError extends FollowUpError {
  declare readonly code: 'TERMINATED';
}

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
    `The batch ${JSON.stringify(batchId)} exists with other items, other request options or another order. Nothing was started. ` +
      'Use the original input to continue the batch, or another batch ID to start another batch.',
  );
}

export function scheduleConflictError(scheduleId: string): ConflictError {
  return new ConflictError(
    'CONFLICT',
    `The schedule ${JSON.stringify(scheduleId)} already exists. Nothing was changed. Use update to change it, or use another ID.`,
  );
}

/** @param cause the Temporal server's response to the last attempt */
export function scheduleUpdateConflictError(scheduleId: string, cause: unknown): ConflictError {
  const message =
    `Other clients are changing the schedule ${JSON.stringify(scheduleId)} at the same time ` +
    `(${findGrpcError(cause)?.text ?? 'conflict'}). Nothing was changed. Repeat the update.`;
  return new ConflictError('CONFLICT', message, { cause });
}

/** @param found a clause that states which workflow has this ID instead; undefined if none has it */
export function notFoundError(
  kind: 'follow-up' | 'batch' | 'schedule',
  id: string,
  namespace: string,
  found?: string,
): NotFoundError {
  // A caller may have given the request ID instead of the workflow ID.
  const hasForm = kind !== 'follow-up' || id.startsWith('follow-up:');
  const form = hasForm ? '' : ' (most IDs have the form follow-up:PROJECT:JOB:REQUEST_ID)';
  const reason =
    found ??
    `the ID may be misspelled${form}, or the ${kind} was deleted, is in another namespace, or is older than the retention period`;
  const message = `The namespace ${namespace} has no ${kind} ${JSON.stringify(id)}: ${reason}.`;
  return new NotFoundError('NOT_FOUND', message, kind === 'follow-up' ? { workflowId: id } : {});
}

/** The error for a run that does not exist, although the follow-up or batch exists. */
export function runNotFoundError(kind: 'follow-up' | 'batch', id: string, runId: string): NotFoundError {
  const message =
    `The ${kind} ${JSON.stringify(id)} has no run ${JSON.stringify(runId)}. The run was deleted or is older than the retention ` +
    'period, or its ID is misspelled.';
  return new NotFoundError('NOT_FOUND', message, kind === 'follow-up' ? { workflowId: id } : {});
}

/**
 * @param waitedMs null if it is not known how long the call waited
 * @param reason why no response was received, as a clause, for example from {@link explainMissingResponse}
 */
export function waitTimeoutError(
  callState: CallState,
  waitedMs: number | null,
  reason?: string,
): FollowUpError {
  const { workflowId, unconfirmedStart } = callState;
  const isStarted = workflowId !== undefined && unconfirmedStart === undefined;
  const limit = waitedMs === null ? '' : ` within ${waitedMs / 1_000} s`;
  const text = isStarted
    ? reason === undefined
      ? `The call for the ${labelFromId(workflowId)} did not end${limit}. The timeout ends only the call.`
      : `The ${labelFromId(workflowId)} did not respond${limit}: ${reason}.`
    : `The call received no response${limit}${reason === undefined ? '' : `: ${reason}`}.`;
  return interruptedCallError('WAIT_TIMEOUT', text, callState);
}

/**
 * The error of a batch's cancellation with its running follow-ups, if no worker responded.
 *
 * @param timeoutError the error of the update
 * @param followUps the number of running follow-ups whose cancellation was requested
 */
export function cancelTimeoutError({ message, workflowId }: FollowUpError, followUps: number): FollowUpError {
  const reason =
    `${message} The batch and ${pluralize(followUps, 'running follow-up')} will be cancelled when a worker runs. ` +
    'Then repeat the call, because the batch may start further follow-ups before it ends.';
  return interruptedCallError('WAIT_TIMEOUT', reason, { workflowId: workflowId ?? undefined });
}

/**
 * Explains, as a clause, why no worker responds. @param workers the number of workers that poll the task queue; null if it is
 * not known
 */
export function explainMissingResponse(taskQueue: string, workers: number | null): string {
  const queue = `the task queue ${JSON.stringify(taskQueue)}`;
  if (workers === null)
    return `check that a worker polls ${queue}, because the Temporal server does not return its workers; then try again`;
  if (workers === 0) return `no worker polls ${queue}; start a worker`;
  return `the worker on ${queue} is busy, waits for the agent service, or has just stopped; try again`;
}

export function wrongStateError(workflowId: string, state: string): FollowUpError {
  const isRunning = state === 'running';
  const message = `The ${labelFromId(workflowId)} ${isRunning ? 'is still running' : `has already ended: ${state}`}.`;
  return new FollowUpError(isRunning ? 'STILL_RUNNING' : 'ALREADY_ENDED', message, { workflowId, state });
}

/** @param reason why the worker or this client rejected the update, as a clause */
export function updateRejectedError(workflowId: string, reason: string): FollowUpError {
  const message = `The update of the ${labelFromId(workflowId)} was rejected: ${reason.replace(/\.$/, '')}.`;
  return new FollowUpError('UPDATE_REJECTED', message, { workflowId });
}

/** @param reason why a retry could send the message twice or has no message to send, as a sentence */
export function retryNotAllowedError(
  workflowId: string,
  reason: string,
  receipt: Receipt | null,
): FollowUpError {
  const message = `The ${labelFromId(workflowId)} can't be retried. ${reason} To send the message again, use a new request ID.`;
  return new FollowUpError('RETRY_NOT_ALLOWED', message, { workflowId, receipt });
}

/** @param latestRunId the run that a later retry started */
export function retriedAlreadyError(workflowId: string, latestRunId: string): FollowUpError {
  const message =
    `This run of the ${labelFromId(workflowId)} was already retried, and the latest run ${latestRunId} has ended. Nothing was started. ` +
    `To retry the latest run, retry the follow-up with the run ID ${latestRunId}, or without a run ID.`;
  return new FollowUpError('RETRY_NOT_ALLOWED', message, { workflowId, state: 'retried' });
}

function labelFromId(workflowId: string): string {
  return `${workflowId.startsWith('follow-up-batch:') ? 'batch' : 'follow-up'} ${workflowId}`;
}
