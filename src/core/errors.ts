import type { AgentJob } from './job';
import type { FailureDetails, Receipt } from './result';

/** What tells errors of the client apart. They stay the same when names and messages change. */
export type FollowUpErrorCode =
  | 'INVALID_REQUEST'
  /** The name is taken: by another message, another batch or another schedule. */
  | 'CONFLICT'
  | 'REJECTED'
  | 'DELIVERY_UNKNOWN'
  | 'DEADLINE_EXCEEDED'
  | 'JOB_NOT_FOUND'
  | 'CANCELLED'
  | 'TERMINATED'
  | 'TIMED_OUT'
  | 'UNEXPECTED_FAILURE'
  /** No such follow-up, batch or schedule. */
  | 'NOT_FOUND'
  /** It has ended, and only a running one can do this. */
  | 'ALREADY_ENDED'
  /** It is running, and only an ended one can do this. */
  | 'STILL_RUNNING'
  | 'UPDATE_REFUSED'
  /** No receipt proves that the message was not sent, or was rejected. */
  | 'RETRY_REFUSED'
  /** Nobody knows whether the call has started what it was to start: the same call may be repeated. */
  | 'NOT_CONFIRMED'
  /** What the call is about exists, and the call ended before its answer. */
  | 'NO_ANSWER'
  | 'BATCH_FORGOTTEN'
  | 'LIMITS_UNAVAILABLE'
  /** The client was closed before or during the call. */
  | 'CLOSED'
  | 'MISCONFIGURED'
  | 'UNREACHABLE'
  | 'UNAUTHORIZED'
  /** The server refuses a call for any other reason. */
  | 'SERVER_REFUSED'
  | 'NOT_SET_UP';

/** What is known where an error is thrown. */
export type ErrorFacts = ErrorOptions &
  Partial<Pick<FollowUpError, 'receipt' | 'details' | 'state'>> & {
    readonly workflowId?: string | null | undefined;
  };

/** What the client throws, also for the connection. What callers tell apart has a subclass, the rest only its code. */
export class FollowUpError extends Error {
  /** The workflow that the error is about; null where there is none. */
  readonly workflowId: string | null;
  /** The last job that was seen; null where none is known. */
  readonly job: AgentJob | null;
  /** What is known of the message; null where nothing is. */
  readonly receipt: Receipt | null;
  /** With which a follow-up has failed: the last job, the receipt and the service's own words; null for any other error. */
  readonly details: FailureDetails | null;
  /** With `ALREADY_ENDED` and `STILL_RUNNING`: the state that it has. */
  readonly state: string | null;

  constructor(
    readonly code: FollowUpErrorCode,
    message: string,
    { workflowId, receipt, details, state, ...options }: ErrorFacts = {},
  ) {
    super(message, options);
    this.name = new.target.name;
    this.workflowId = workflowId ?? null;
    this.job = details?.job ?? null;
    this.receipt = details?.followUp ?? receipt ?? null;
    this.details = details ?? null;
    this.state = state ?? null;
  }
}

export function hasCode(error: unknown, ...codes: readonly FollowUpErrorCode[]): error is FollowUpError {
  return error instanceof FollowUpError && codes.includes(error.code);
}
