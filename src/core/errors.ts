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
  | 'NOT_SET_UP';

/**
 * The base of everything that the client throws on its own. Errors of the SDK, such as `ServiceError`, pass through
 * unchanged.
 */
export abstract class FollowUpError extends Error {
  abstract readonly code: FollowUpErrorCode;
  /** The workflow that the error is about; null where there is none. */
  readonly workflowId: string | null = null;
  /** The last job that was seen; null where none is known. */
  readonly job: AgentJob | null = null;
  /** What is known of the message; null where nothing is. */
  readonly receipt: Receipt | null = null;
}
