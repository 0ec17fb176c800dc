import { isRecord } from './json';
import type { AgentJob, JobState } from './job';

/** The result of `followUp`: the final job, and the receipt that says how this is known. */
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
  /** Reads since the send whose answer was reported. Reads before the send are not counted. */
  readonly polls: number;
  /** When the POST began, by the worker's clock within the bounds of the workflow's; null while nothing was sent. */
  readonly sentAt: string | null;
  /** When the follow-up ended; null while it runs. */
  readonly settledAt: string | null;
  /** How often each answer was seen by polls: a status, `http 503`, `timeout`, …; at most 32 keys, then `other`. */
  readonly observed: Readonly<Record<string, number>>;
}

/** The types of the non-retryable `ApplicationFailure` with which a follow-up can end. */
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
  /** The status code of the answer that decided, if an answer did. */
  readonly httpStatus?: number;
  /** The service's own words, at most 1 KiB. */
  readonly serviceMessage?: string;
}

/** What is known about the delivery of the message. */
export type Verdict = 'not-sent' | 'accepted' | 'rejected' | 'unknown';

/** Who says that the message arrived. */
export type ConfirmedBy = 'response' | 'read' | 'operator' | 'assumed';

export interface Delivery {
  readonly verdict: Verdict;
  /** Null unless the verdict is `accepted`. */
  readonly confirmedBy: ConfirmedBy | null;
  /** POSTs that were not provably kept from the service: an answered 429 counts, a refused connection does not. */
  readonly sends: number;
}

/**
 * Why a terminal status was believed.
 *
 * Only fresh answers count: those that were asked for at least `confirm` after the POST ended.
 *
 * - `seen-active`: the job was terminal before the send, and a read since the POST was not.
 * - `status-changed`: it went from one terminal status to another, `completed` or `failed`.
 * - `job-changed`: the status held for another `confirm`, and the link or `archivedAt` differ from those before the send.
 * - `confirmed`: the status held for another `confirm`, and nothing shows a turn.
 */
export type Evidence = 'seen-active' | 'status-changed' | 'job-changed' | 'confirmed';

/** The phases of a follow-up; the values of the search attribute `FollowUpPhase`. */
export const PHASES = [
  'baseline',
  'waiting',
  'sending',
  'reconciling',
  'needs-decision',
  'watching',
  'confirming',
  'settling',
  'unauthorized',
  'done',
  'failed',
  'cancelled',
] as const;
export type Phase = (typeof PHASES)[number];

/**
 * The answer of the query `progress`, and of every update. Times are ISO 8601 in UTC.
 *
 * While an activity polls on, only its heartbeats have its counts and the time of its next read. `polls`, `observed` and
 * `lastAnswer` are then those from before it, and `nextPollAt` is its first read. `FollowUpClient` and the starter add
 * what the server knows.
 */
export interface FollowUpProgress {
  readonly phase: Phase;
  /** The last job that was seen, before or after the send. */
  readonly job: AgentJob | null;
  readonly delivery: Delivery;
  readonly evidence: Evidence | null;
  readonly observed: Readonly<Record<string, number>>;
  readonly polls: number;
  /** Null while no read is planned: during a send, and after the end. */
  readonly nextPollAt: string | null;
  readonly deadlineAt: string;
  /** The last answer in words, such as `completed`, `http 503: try later` or `ECONNREFUSED`; null before the first. */
  readonly lastAnswer: string | null;
}

/** What an operator decides about an unknown delivery: the argument of the update `resolveDelivery`. */
export const DELIVERY_DECISIONS = ['delivered', 'not-delivered'] as const;
export type DeliveryDecision = (typeof DELIVERY_DECISIONS)[number];

/** Whether a value from history or memo is a receipt. It checks each field on which this client relies. */
export function isReceipt(value: unknown): value is Receipt {
  return (
    isRecord(value) &&
    isRecord(value.delivery) &&
    typeof value.delivery.verdict === 'string' &&
    typeof value.delivery.sends === 'number' &&
    typeof value.polls === 'number' &&
    isRecord(value.observed)
  );
}
