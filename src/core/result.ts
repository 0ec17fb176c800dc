import {
  type Check,
  type Checked,
  count,
  fields,
  mapOf,
  number,
  oneOf,
  optional,
  orNull,
  text,
} from './checks';
import { type AgentJob, isAgentJob, isJobState, jobFields } from './job';

/** What is known about the delivery of the message. */
export const VERDICTS = ['not-sent', 'accepted', 'rejected', 'unknown'] as const;
export const isVerdict = oneOf(...VERDICTS);
export type Verdict = Checked<typeof isVerdict>;

/** The one rule of every retry, of a follow-up or of a batch: only a receipt that proves it lets the message be sent once more. */
export function mayBeRetried(verdict: Verdict | null | undefined): boolean {
  return verdict === 'not-sent' || verdict === 'rejected';
}

/**
 * The search attribute `FollowUpOutcome` of a follow-up that has ended: its outcome, before which the verdict stands unless it is
 * `accepted`. So `completed`, `unknown DeliveryUnknown`, `not-sent DeadlineExceeded`, `rejected FollowUpRejected`, `cancelled`.
 * A filter can tell how a text begins, not how it ends, and the verdict is what one looks for first: what to look at, what to retry.
 */
export function outcomeText(outcome: string, verdict: Verdict): string {
  return verdict === 'accepted' ? outcome : `${verdict} ${outcome}`;
}

/** Who says that a message arrived. A later version may add a word, and older readers must take its results. */
export type ConfirmedBy = 'response' | 'read' | 'operator' | 'assumed';

export const isDelivery = fields({
  verdict: isVerdict,
  /** Who says that the message arrived; null unless the verdict is `accepted`. */
  confirmedBy: orNull(text as Check<ConfirmedBy>),
  /** POSTs that were not provably kept from the service: an answered 429 counts, a refused connection does not. */
  sends: count,
});
export type Delivery = Checked<typeof isDelivery>;

/**
 * Why a terminal status was believed, by fresh answers: those that were asked for at least `confirm` after the POST ended.
 *
 * - `seen-active`: the job was terminal before the send, and a read since the POST was `active`.
 * - `status-changed`: it went from one terminal status to another, `completed` or `failed`.
 * - `job-changed`: the status held for another `confirm`, and the link or `archivedAt` differ from those before the send.
 * - `confirmed`: the status held for another `confirm`, and nothing shows a turn.
 */
export const EVIDENCES = ['seen-active', 'status-changed', 'job-changed', 'confirmed'] as const;
export type Evidence = (typeof EVIDENCES)[number];
/** Any text, as for {@link ConfirmedBy}. */
export const isEvidence = text as Check<Evidence>;

/** What a follow-up did and saw. Times are ISO 8601 in UTC. */
export const isReceipt = fields({
  requestId: text,
  delivery: isDelivery,
  /** Null until a terminal status is believed. */
  evidence: orNull(isEvidence),
  /** The job as it was before the send; null while it has not been read. */
  baseline: orNull(isJobState),
  /** The SHA-256 of the prompt, in hexadecimal digits: whether it is your message; null if the request was invalid. */
  promptDigest: orNull(text),
  /** Reads since the send whose answer was reported. Reads before the send are not counted. */
  polls: count,
  /** When the POST began, by the worker's clock within the bounds of the workflow's; null while nothing was sent. */
  sentAt: orNull(text),
  /** When the follow-up ended; null while it runs. */
  settledAt: orNull(text),
  /** How often each answer was seen by polls: a status, `http 503`, `timeout`, …; at most 32 keys, then `other`. */
  observed: mapOf(count),
});
export type Receipt = Checked<typeof isReceipt>;

/** The result of `followUp`: the final job, and the receipt that says how this is known. */
export const isFollowUpResult = fields({ ...jobFields, followUp: isReceipt });
export type FollowUpResult = Checked<typeof isFollowUpResult>;

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
export const isFailureDetails = fields({
  /** The last job that was seen. */
  job: orNull(isAgentJob),
  followUp: isReceipt,
  /** The status code of the answer that decided, if an answer did. */
  httpStatus: optional(number),
  /** The service's own words, at most 1 KiB. */
  serviceMessage: optional(text),
});
export type FailureDetails = Checked<typeof isFailureDetails>;

/** The phases of a follow-up, which are the values of the search attribute `FollowUpPhase`: what it does in each. */
const DOING = {
  baseline: 'reads the job, then sends the message; a limit can make it wait (`limits show`)',
  waiting: 'waits for its turn, and until the job is at rest (whenActive: wait); then the message is sent',
  sending: 'sends the message, once a limit lets it (`limits show`)',
  reconciling: 'reads the job to find out whether the message arrived',
  'needs-decision': 'waits for a decision, and reads the job meanwhile',
  watching: 'the message is sent; reads the job until it ends',
  confirming: 'the job shows as ended; reads it until that is certain (confirm)',
  settling: 'the job is completed; waits for its pull request (settle)',
  unauthorized: 'tries again to read the job',
  done: 'nothing; the result is the final job',
  failed: 'nothing; it has ended, and its failure says why (in the Web UI under Event History)',
  cancelled: 'nothing; the watch has ended, and the agent continues if the message arrived',
} as const;
export type Phase = keyof typeof DOING;
export const PHASES = Object.keys(DOING) as readonly Phase[];

/**
 * The answer of the query `progress`, and of every update. Times are ISO 8601 in UTC. While an activity polls on, `polls`,
 * `observed` and `lastAnswer` are those from before it, and `nextPollAt` is its first read; the client adds its heartbeats.
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
  /** Why nobody can tell whether the message arrived; only where the delivery is unknown. */
  readonly doubt?: string;
  /** The last answer in words, such as `completed`, `http 503: try later` or `ECONNREFUSED`; null before the first. */
  readonly lastAnswer: string | null;
}

const WAIT =
  'nothing, unless the last answer is an error that stays: then mend its cause. Cancelling ends the watch, not the agent';

const AFTER: Readonly<Record<Verdict, string>> = {
  'not-sent':
    "mend the cause; then the starter's `retry` sends the message. A corrected request needs a new request id",
  rejected:
    "mend the cause; then the starter's `retry` sends the message again. Another request needs a new request id",
  unknown: 'look at the job: if the message is there, nothing; if not, a new request id sends it again',
  accepted: 'look at the job: the agent may still work on it',
};

/** What a follow-up does, why, and what to do. @param decide how the reader decides about an unknown delivery */
export function phaseRows(
  { phase, doubt, delivery }: Pick<FollowUpProgress, 'phase' | 'doubt' | 'delivery'>,
  decide: string,
): (readonly [name: string, value: string])[] {
  const rows = { phase, doing: (DOING[phase] as string | undefined) ?? 'see its worker, which is newer' };
  if (phase === 'needs-decision') {
    const why = `nobody can tell whether the message arrived: ${doubt ?? 'the send has no answer'}`;
    const effect = 'delivered waits for the end of the job, not-delivered sends the message once more';
    return Object.entries({ ...rows, why, 'what to do': `look at the job; then ${decide}: ${effect}` });
  }
  if (phase === 'unauthorized') {
    const why = "the agent service refuses the worker's key; the last answer has its words";
    const todo =
      'give the workers a valid AGENT_API_KEY or AGENT_API_KEY_FILE; reading then continues by itself';
    return Object.entries({ ...rows, why, 'what to do': todo });
  }
  // A later version may have another phase.
  if (phase === 'done' || !PHASES.includes(phase)) return Object.entries(rows);
  const over = phase === 'failed' || phase === 'cancelled';
  return Object.entries({ ...rows, 'what to do': over ? nextStep(delivery) : WAIT });
}

/** What to do about a follow-up that ended without a final job. */
export function nextStep({ verdict }: Pick<Delivery, 'verdict'>): string {
  return verdict in AFTER ? AFTER[verdict] : AFTER.unknown;
}

/** What an operator decides about an unknown delivery: the argument of the update `resolveDelivery`. */
export const DELIVERY_DECISIONS = ['delivered', 'not-delivered'] as const;
export type DeliveryDecision = (typeof DELIVERY_DECISIONS)[number];
