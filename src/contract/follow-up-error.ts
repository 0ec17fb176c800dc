import type { AgentJob } from './job';
import type { FailureDetails, Receipt } from './result';

/** They stay the same when names and messages change; docs/client.md has the cause and the effect of each. */
export type FollowUpErrorCode =
  | 'INVALID_REQUEST'
  | 'CONFLICT'
  | 'REJECTED'
  | 'DELIVERY_UNKNOWN'
  | 'DEADLINE_EXCEEDED'
  | 'JOB_NOT_FOUND'
  | 'CANCELLED'
  | 'TERMINATED'
  | 'WORKFLOW_TIMED_OUT'
  | 'UNEXPECTED_FAILURE'
  | 'NOT_FOUND'
  | 'ALREADY_ENDED'
  | 'STILL_RUNNING'
  | 'UPDATE_REJECTED'
  | 'RETRY_NOT_ALLOWED'
  | 'START_UNCONFIRMED'
  | 'WAIT_TIMEOUT'
  | 'BATCH_ITEMS_UNAVAILABLE'
  | 'CLIENT_CLOSED'
  | 'INVALID_CONFIGURATION'
  | 'UNREACHABLE'
  | 'UNAUTHORIZED'
  | 'SERVER_ERROR'
  | 'NAMESPACE_NOT_SET_UP';

export type ErrorFacts = ErrorOptions &
  Partial<Pick<FollowUpError, 'receipt' | 'details' | 'state'>> & {
    readonly workflowId?: string | null | undefined;
  };

/** What the client throws. What callers tell apart has a subclass, the rest only its code. */
export class FollowUpError extends Error {
  /** What the error is about; null where that is no workflow. */
  readonly workflowId: string | null;
  /** The last job that was seen; null where none is known. */
  readonly job: AgentJob | null;
  /** What is known of the message; null where nothing is. */
  readonly receipt: Receipt | null;
  /** Of a follow-up that has failed: the last job, the receipt and the service's own words; else null. */
  readonly details: FailureDetails | null;
  /** With `ALREADY_ENDED` and `STILL_RUNNING`. */
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
    this.receipt = details?.receipt ?? receipt ?? null;
    this.details = details ?? null;
    this.state = state ?? null;
  }
}

export function hasCode(error: unknown, ...codes: readonly FollowUpErrorCode[]): error is FollowUpError {
  return error instanceof FollowUpError && codes.includes(error.code);
}
