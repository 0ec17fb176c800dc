import type { Delivery, Evidence } from './delivery';
import type { AgentJob, JobState } from './job';

/** The result of `followUp`: the final job, and the receipt that says how we know. */
export interface FollowUpResult extends AgentJob {
  readonly followUp: Receipt;
}

/** What a follow-up did and saw. Times are ISO 8601 in UTC. */
export interface Receipt {
  readonly requestId: string;
  readonly delivery: Delivery;
  /** Null until a terminal status is believed. */
  readonly evidence: Evidence | null;
  /** The job as it was before the send; null while it has not been read. */
  readonly baseline: JobState | null;
  /** Reads since the send whose answer was reported; those before the send are no polls. */
  readonly polls: number;
  /** When the send was decided, by the workflow's clock; null while nothing was sent. */
  readonly sentAt: string | null;
  /** When the follow-up ended; null while it runs. */
  readonly settledAt: string | null;
  /** How often each answer was seen by polls: a status, `http 503`, `timeout`, …; at most 32 keys, then `other`. */
  readonly observed: Readonly<Record<string, number>>;
}

/** The types of the non-retryable `ApplicationFailure` by which a follow-up can end. */
export const FAILURE_TYPES = [
  'InvalidRequest',
  'FollowUpRejected',
  'DeliveryUnknown',
  'JobNotFound',
  'DeadlineExceeded',
] as const;
export type FailureType = (typeof FAILURE_TYPES)[number];

/** `details[0]` of every such failure. */
export interface FailureDetails {
  /** The last job that was seen. */
  readonly job: AgentJob | null;
  readonly followUp: Receipt;
  /** The status code of the answer that decided, where an answer did. */
  readonly httpStatus?: number;
  /** The service's own words, at most 1 KiB. */
  readonly serviceMessage?: string;
}
