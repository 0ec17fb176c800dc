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

/** The one rule of every retry, of a follow-up or of a batch. */
export function mayBeRetried(verdict: Verdict | null | undefined): boolean {
  return verdict === 'not-sent' || verdict === 'rejected';
}

/** The attribute `FollowUpOutcome`, such as `unknown DeliveryUnknown`: a filter can tell only how a text begins. */
export function outcomeText(outcome: string, verdict: Verdict): string {
  return verdict === 'accepted' ? outcome : `${verdict} ${outcome}`;
}

/** A later version may add a word, which older readers take. */
export type ConfirmedBy = 'response' | 'read' | 'operator' | 'assumed';

/** `confirmedBy` is null unless accepted; `sends` counts POSTs that were not provably kept from the service. */
export const isDelivery = fields({
  verdict: isVerdict,
  confirmedBy: orNull(text as Check<ConfirmedBy>),
  sends: count,
});
export type Delivery = Checked<typeof isDelivery>;

/** Why a terminal status was believed: `belief` in evidence.ts, and docs/result.md. */
export const EVIDENCES = ['seen-active', 'status-changed', 'job-changed', 'confirmed'] as const;
export type Evidence = (typeof EVIDENCES)[number];
/** Any text, as for {@link ConfirmedBy}. */
export const isEvidence = text as Check<Evidence>;

/** What a follow-up did and saw; docs/result.md says more. Times are ISO 8601 in UTC. */
export const isReceipt = fields({
  requestId: text,
  delivery: isDelivery,
  /** Null until a terminal status is believed. */
  evidence: orNull(isEvidence),
  /** The job right before the send, once it was read. */
  baseline: orNull(isJobState),
  /** SHA-256 in hexadecimal digits; null if the request was invalid. */
  promptDigest: orNull(text),
  /** Reads since the send whose answer was reported. */
  polls: count,
  /** When the POST began; null while nothing was sent. */
  sentAt: orNull(text),
  /** Null while the follow-up runs. */
  settledAt: orNull(text),
  /** How often each answer was seen: a status, `http 503`, …; at most 32 keys, then `other`. */
  observed: mapOf(count),
});
export type Receipt = Checked<typeof isReceipt>;

/** The final job, and the receipt that says how it is known. */
export const isFollowUpResult = fields({ ...jobFields, followUp: isReceipt });
export type FollowUpResult = Checked<typeof isFollowUpResult>;

/** The types of the `ApplicationFailure` with which a follow-up can end. */
export const FAILURE_TYPES = [
  'InvalidRequest',
  'FollowUpRejected',
  'DeliveryUnknown',
  'JobNotFound',
  'DeadlineExceeded',
] as const;
export type FailureType = (typeof FAILURE_TYPES)[number];

/** Their `details[0]`. */
export const isFailureDetails = fields({
  /** The last job that was seen. */
  job: orNull(isAgentJob),
  followUp: isReceipt,
  /** Of the answer that decided, if one did. */
  httpStatus: optional(number),
  /** The service's own words. */
  serviceMessage: optional(text),
});
export type FailureDetails = Checked<typeof isFailureDetails>;

/** What a follow-up does in each phase, as the search attribute `FollowUpPhase` names it. */
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

/** The answer of query and updates. While an activity polls on, it is from before; the client adds what its heartbeats say. */
export interface FollowUpProgress extends Pick<Receipt, 'delivery' | 'evidence' | 'observed' | 'polls'> {
  readonly phase: Phase;
  readonly job: AgentJob | null;
  /** Null while no read is planned. */
  readonly nextPollAt: string | null;
  readonly deadlineAt: string;
  /** Why nobody can tell whether the message arrived. */
  readonly doubt?: string | undefined;
  /** Such as `completed`, `http 503: try later` or `ECONNREFUSED`; null before the first. */
  readonly lastAnswer: string | null;
}

const WAIT =
  'nothing, unless the last answer is an error that stays: then mend its cause. Cancelling ends the watch, not the agent';
const NEW_KEY =
  'give the workers a valid AGENT_API_KEY or AGENT_API_KEY_FILE; reading then continues by itself';
const RETRY =
  "mend the cause; then the starter's `retry` sends the message. A corrected request needs a new request id";

const AFTER: Readonly<Record<Verdict, string>> = {
  'not-sent': RETRY,
  rejected: RETRY,
  unknown: 'look at the job: if the message is there, nothing; if not, a new request id sends it again',
  accepted: 'look at the job: the agent may still work on it',
};

/** What a follow-up does, why, and what to do. @param decide how the reader decides about an unknown delivery */
export function phaseRows(
  { phase, doubt, delivery }: Pick<FollowUpProgress, 'phase' | 'doubt' | 'delivery'>,
  decide: string,
): (readonly [name: string, value: string])[] {
  const rows: [string, string][] = [['phase', phase]];
  // A later version may have another phase.
  if (!PHASES.includes(phase)) return [...rows, ['doing', 'see its worker, which is newer']];
  rows.push(['doing', DOING[phase]]);
  if (phase === 'needs-decision') {
    const why = `nobody can tell whether the message arrived: ${doubt ?? 'the send has no answer'}`;
    const effect = 'delivered waits for the end of the job, not-delivered sends the message once more';
    return [...rows, ['why', why], ['what to do', `look at the job; then ${decide}: ${effect}`]];
  }
  if (phase === 'unauthorized') {
    const why = "the agent service refuses the worker's key; the last answer has its words";
    return [...rows, ['why', why], ['what to do', NEW_KEY]];
  }
  if (phase === 'done') return rows;
  const isOver = phase === 'failed' || phase === 'cancelled';
  return [...rows, ['what to do', isOver ? adviceAfter(delivery) : WAIT]];
}

/** What to do about a follow-up that ended without a final job. */
export function adviceAfter({ verdict }: Pick<Delivery, 'verdict'>): string {
  return verdict in AFTER ? AFTER[verdict] : AFTER.unknown;
}

/** What an operator says of an unknown delivery. */
export const DELIVERY_DECISIONS = ['delivered', 'not-delivered'] as const;
export type DeliveryDecision = (typeof DELIVERY_DECISIONS)[number];
