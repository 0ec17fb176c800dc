import {
  type Check,
  type Checked,
  count,
  objectOf,
  mapOf,
  number,
  literalOf,
  optional,
  orNull,
  text,
} from './checks';
import { type AgentJob, isAgentJob, isJobState, jobFields } from './job';

/** Whether the message arrived. */
export const VERDICTS = ['not-sent', 'accepted', 'rejected', 'unknown'] as const;
export const isVerdict = literalOf(...VERDICTS);
export type Verdict = Checked<typeof isVerdict>;

/** The one rule of every retry, of a follow-up or of a batch. */
export function canRetry(verdict: Verdict | null | undefined): boolean {
  return verdict === 'not-sent' || verdict === 'rejected';
}

/** A later version may add a word, which older readers take. */
export type ConfirmedBy = 'response' | 'read' | 'operator' | 'assumed';

/** `confirmedBy` is null unless accepted; `sends` counts POSTs that were not provably kept from the service. */
const isDelivery = objectOf({
  verdict: isVerdict,
  confirmedBy: orNull(text as Check<ConfirmedBy>),
  sends: count,
});
export type Delivery = Checked<typeof isDelivery>;

/** Why a terminal status was accepted: `judgeEnd` in src/follow-up/evidence.ts, and docs/result.md. */
export const EVIDENCES = [
  'seen-active',
  'status-changed',
  'job-changed',
  'unchanged',
  'active-before',
] as const;
export type Evidence = (typeof EVIDENCES)[number];
/** Any text, as for {@link ConfirmedBy}. */
export const isEvidence = text as Check<Evidence>;

/** The receipt of a follow-up. docs/result.md describes each field. Times are ISO 8601 in UTC. */
export const isReceipt = objectOf({
  requestId: text,
  delivery: isDelivery,
  /** Null until a terminal status is accepted. */
  evidence: orNull(isEvidence),
  /** The job right before the send, once it was read. */
  baseline: orNull(isJobState),
  /** SHA-256 in hexadecimal digits; null if the request was invalid. */
  promptDigest: orNull(text),
  /** The number of reads since the send whose response was reported. */
  polls: count,
  /** When the POST started; null if nothing was sent. */
  sentAt: orNull(text),
  /** Null while the follow-up runs. */
  endedAt: orNull(text),
  /** The count of each response to a poll: a status, `http_503`, `timeout`, …; at most 32 keys, then `other`. */
  responseCounts: mapOf(count),
});
export type Receipt = Checked<typeof isReceipt>;

/** The final job, and the receipt that says how it is known. */
export const isFollowUpResult = objectOf({ ...jobFields, receipt: isReceipt });
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
export const isFailureDetails = objectOf({
  /** The job in the latest readable response. */
  job: orNull(isAgentJob),
  receipt: isReceipt,
  /** The HTTP status of the response that ended the follow-up, if one did. */
  httpStatus: optional(number),
  /** The agent service's error text. */
  serviceMessage: optional(text),
});
export type FailureDetails = Checked<typeof isFailureDetails>;

/** The action of a follow-up in each phase. The phases are the values of the search attribute `FollowUpPhase`. */
const PHASE_ACTIONS = {
  starting: 'reads the job, then sends the message; a rate limit can delay both',
  'waiting-for-job':
    'waits for the job lock and until the job is idle (whenActive is wait); then sends the message',
  sending: 'sends the message; a rate limit can delay it',
  reconciling: 'reads the job to find out whether the message arrived',
  'needs-decision': 'waits for a decision, and reads the job meanwhile',
  watching: 'the message is sent; reads the job until it ends',
  confirming: 'the job has a terminal status; reads the job until the status is accepted (maxStaleness)',
  'waiting-for-link': 'the job is completed; waits for its pull request link (prLinkTimeout)',
  unauthorized: 'waits until the agent service accepts the key, and tries again',
  done: 'nothing; the result is the final job',
  failed: 'nothing; it has ended, and its failure says why (in the Web UI under Event History)',
  cancelled: 'nothing; the watch has ended, and the agent continues if the message arrived',
} as const;
export type Phase = keyof typeof PHASE_ACTIONS;
export const PHASES = Object.keys(PHASE_ACTIONS) as readonly Phase[];

/**
 * The result of the query and the updates. The reads of a pending `pollJob` are not in it; the client adds them from the Temporal
 * server's description of the workflow.
 */
export interface FollowUpProgress extends Pick<Receipt, 'evidence' | 'responseCounts' | 'polls'> {
  /** While the message is being sent, the verdict is `unknown`, and the send is counted. */
  readonly delivery: Delivery;
  /** While the message is being sent: the delivery if the Temporal server has recorded no send permission. Absent otherwise. */
  readonly deliveryBeforeSend?: Delivery | undefined;
  readonly phase: Phase;
  readonly job: AgentJob | null;
  /** Null while no read is planned. */
  readonly nextPollAt: string | null;
  readonly deadlineAt: string;
  /** The reason why it is unknown whether the message arrived. */
  readonly deliveryUnknownReason?: string | undefined;
  /** Such as `completed`, `http 503: try later` or `ECONNREFUSED`; null before the first. */
  readonly lastResponse: string | null;
}

const WAIT_ADVICE =
  'nothing, unless the last answer is an error that stays: then mend its cause. Cancelling ends the watch, not the agent';
const NEW_KEY_ADVICE =
  'give the workers a valid AGENT_API_KEY or AGENT_API_KEY_FILE; the follow-up then continues automatically';
const RETRY_ADVICE =
  "mend the cause; then the starter's `retry` sends the message. A corrected request needs a new request id";

const ADVICE_BY_VERDICT: Readonly<Record<Verdict, string>> = {
  'not-sent': RETRY_ADVICE,
  rejected: RETRY_ADVICE,
  unknown: 'look at the job: if the message is there, nothing; if not, a new request id sends it again',
  accepted: 'look at the job: the agent may still work on it',
};

/** Table rows with the phase, its reason and the required action. @param decide how an operator resolves an unknown delivery */
export function phaseRows(
  {
    phase,
    deliveryUnknownReason,
    delivery,
  }: Pick<FollowUpProgress, 'phase' | 'deliveryUnknownReason' | 'delivery'>,
  decide: string,
): (readonly [name: string, value: string])[] {
  const rows: [string, string][] = [['phase', phase]];
  // A later version may have another phase.
  if (!PHASES.includes(phase)) return [...rows, ['doing', 'see its worker, which is newer']];
  rows.push(['doing', PHASE_ACTIONS[phase]]);
  if (phase === 'needs-decision') {
    const reason = `nobody can tell whether the message arrived: ${deliveryUnknownReason ?? 'the send has no answer'}`;
    const effect = 'delivered waits for the end of the job, not-delivered sends the message once more';
    return [...rows, ['why', reason], ['what to do', `look at the job; then ${decide}: ${effect}`]];
  }
  if (phase === 'unauthorized') {
    const reason = "the agent service rejects the worker's key; the last response has its error text";
    return [...rows, ['why', reason], ['what to do', NEW_KEY_ADVICE]];
  }
  if (phase === 'done') return rows;
  const isOver = phase === 'failed' || phase === 'cancelled';
  return [...rows, ['what to do', isOver ? getAdviceAfterEnd(delivery) : WAIT_ADVICE]];
}

/** The required action for a follow-up that ended without a final job. */
export function getAdviceAfterEnd({ verdict }: Pick<Delivery, 'verdict'>): string {
  return verdict in ADVICE_BY_VERDICT ? ADVICE_BY_VERDICT[verdict] : ADVICE_BY_VERDICT.unknown;
}

/** An operator's decision about an unknown delivery. */
export const DELIVERY_DECISIONS = ['delivered', 'not-delivered'] as const;
export type DeliveryDecision = (typeof DELIVERY_DECISIONS)[number];
