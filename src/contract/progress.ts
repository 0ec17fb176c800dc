import type { Delivery, Evidence } from './delivery';
import type { AgentJob } from './job';

/** Where a follow-up stands; the values of the search attribute `FollowUpPhase`. */
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
 * While an activity polls on, only its heartbeats tell what it has counted and when it reads next:
 * `polls`, `observed` and `lastAnswer` are then those from before it, `nextPollAt` is its first read. `FollowUpClient` and the
 * starter add what the server knows.
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

/** What an operator says of a delivery that nobody can tell: the argument of the update `resolveDelivery`. */
export const DELIVERY_DECISIONS = ['delivered', 'not-delivered'] as const;
export type DeliveryDecision = (typeof DELIVERY_DECISIONS)[number];
