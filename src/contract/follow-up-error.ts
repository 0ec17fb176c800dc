import type { AgentJob } from './job';
import type { FailureDetails, Receipt } from './result';

/** The codes stay the same when names and messages change. docs/client.md describes the cause and the effect of each code. */
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
  | 'UNSUPPORTED_SERVER'
  | 'NAMESPACE_NOT_SET_UP';

export type ErrorFacts = ErrorOptions &
  Partial<Pick<FollowUpError, 'receipt' | 'details' | 'state'>> & {
    readonly workflowId?: string | null | undefined;
  };

/**
 * The error that the client throws. Errors that a caller handles differently are subclasses. All other errors differ only in
 * their code. Each subclass declares its code, because TypeScript would otherwise treat the subclass as the same type.
 */
export class FollowUpError extends Error {
  /** The ID of the workflow that the error concerns. The value is null if the error does not concern a workflow. */
  readonly workflowId: string | null;
  /** The job in the latest readable response before a follow-up failed. The value is null if no job is known, and for any other error. */
  readonly job: AgentJob | null;
  /** The receipt with the delivery of the message. The value is null if the error has no receipt. */
  readonly receipt: Receipt | null;
  /**
   * The details of a failed follow-up: the last job, the receipt and the agent service's error text. Otherwise, the value is
   * null.
   */
  readonly details: FailureDetails | null;
  /**
   * With the code `ALREADY_ENDED` or `STILL_RUNNING`, the value is the state of the workflow. With `RETRY_NOT_ALLOWED`, the value
   * is `retried` if the run was already retried. In all other cases, the value is null.
   */
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

/**
 * Returns whether an error is a {@link FollowUpError} with one of the codes. If the result is true, the type of `code` is one of
 * these codes. If the result is false, the error keeps its type.
 */
export function hasCode<Code extends FollowUpErrorCode>(
  error: unknown,
  ...codes: readonly Code[]
): error is FollowUpError & { readonly code: Code } {
  return error instanceof FollowUpError && codes.some((code) => code === error.code);
}
