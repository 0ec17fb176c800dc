import type { ItemEnd } from './batch';
import type { AgentJob } from './job';
import type { Receipt } from './result';

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
  | 'NO_ANSWER'
  | 'BATCH_FORGOTTEN'
  | 'RESULTS_UNREADABLE'
  | 'LIMITS_UNAVAILABLE'
  | 'MISCONFIGURED'
  | 'UNREACHABLE'
  | 'UNAUTHORIZED'
  | 'NOT_SET_UP';

/** What is known where an error is thrown. */
export interface ErrorFacts extends ErrorOptions {
  readonly workflowId?: string;
  readonly job?: AgentJob | null;
  readonly receipt?: Receipt | null;
  readonly state?: string;
  readonly ends?: readonly ItemEnd[];
}

/**
 * Everything that the client throws on its own. What callers tell apart has a subclass, the rest only its code. Errors of
 * the SDK, such as `ServiceError`, pass through unchanged.
 */
export class FollowUpError extends Error {
  override readonly name: string = 'FollowUpError';
  /** The workflow that the error is about; null where there is none. */
  readonly workflowId: string | null;
  /** The last job that was seen; null where none is known. */
  readonly job: AgentJob | null;
  /** What is known of the message; null where nothing is. */
  readonly receipt: Receipt | null;
  /** With `ALREADY_ENDED` and `STILL_RUNNING`: the state that it has. */
  readonly state: string | null;
  /** With `RESULTS_UNREADABLE`: the ends that could be read, in the order of settling. */
  readonly ends: readonly ItemEnd[] | null;

  constructor(
    readonly code: FollowUpErrorCode,
    message: string,
    { workflowId, job, receipt, state, ends, ...options }: ErrorFacts = {},
  ) {
    super(message, options);
    this.workflowId = workflowId ?? null;
    this.job = job ?? null;
    this.receipt = receipt ?? null;
    this.state = state ?? null;
    this.ends = ends ?? null;
  }
}

/** Whether an error is one of the client's with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly FollowUpErrorCode[]): error is FollowUpError {
  return error instanceof FollowUpError && codes.includes(error.code);
}
