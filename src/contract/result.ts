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
import { type AgentJob, isAgentJob, isJobState, isKnownStatus, jobFields } from './job';

/** Whether the message arrived. */
export const VERDICTS = ['not-sent', 'accepted', 'rejected', 'unknown'] as const;
export const isVerdict = literalOf(...VERDICTS);
export type Verdict = Checked<typeof isVerdict>;

/** Returns whether a retry may send the message. A batch retry can have a wider scope, see `shouldRetry`. */
export function canRetry(verdict: Verdict | null | undefined): boolean {
  return verdict === 'not-sent' || verdict === 'rejected';
}

/** The source of the verdict `accepted`. A later version may add a value, so the check accepts any text. */
export type ConfirmedBy = 'response' | 'read' | 'operator' | 'assumed';

/** `confirmedBy` is null unless the verdict is `accepted`. `sends` counts the POSTs that may have reached the agent service. */
const isDelivery = objectOf({
  verdict: isVerdict,
  confirmedBy: orNull(text as Check<ConfirmedBy>),
  sends: count,
});
export type Delivery = Checked<typeof isDelivery>;

/**
 * Why a terminal status was accepted. `judgeEnd` has the rules, and docs/result.md explains each
 * value.
 */
export const EVIDENCES = [
  'seen-active',
  'status-changed',
  'job-changed',
  'unchanged',
  'active-before',
] as const;
export type Evidence = (typeof EVIDENCES)[number];
/** The check accepts any text, because a later version may add a value. */
export const isEvidence = text as Check<Evidence>;

/** The receipt of a follow-up. docs/result.md describes each field. Times are ISO 8601 in UTC. */
export const isReceipt = objectOf({
  requestId: text,
  delivery: isDelivery,
  /** Why the terminal status was accepted. The value is null until then. */
  evidence: orNull(isEvidence),
  /**
   * The job in the baseline read of the latest POST that may have been processed. Without such a POST, the value is the job in
   * the baseline read of the latest send that made a POST, or that found that the job was not idle or that the workflow was
   * reset. The value is null if this read is not known.
   */
  baseline: orNull(isJobState),
  /** The SHA-256 of the prompt in hexadecimal digits. The value is null if the request was invalid. */
  promptDigest: orNull(text),
  /**
   * The number of reads since the first POST that may have been processed. A read during which a worker died may be counted,
   * although it has no response.
   */
  polls: count,
  /**
   * The start time of the latest POST that was accepted or rejected, or whose delivery is unknown. The value is null if there was
   * none.
   */
  sentAt: orNull(text),
  /** When the follow-up ended. The value is null while the follow-up runs. */
  endedAt: orNull(text),
  /**
   * The count of each response to a poll, by status or by failure label (`http_503`, `timeout`, …). After 32 keys, a response
   * with a new key counts as `other`.
   */
  responseCounts: mapOf(count),
});
export type Receipt = Checked<typeof isReceipt>;

/** The final job, and the receipt that states how the result is known. */
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

/** The value of `details[0]` in each of these failures. */
export const isFailureDetails = objectOf({
  /** The job in the latest readable response. */
  job: orNull(isAgentJob),
  receipt: isReceipt,
  /** The HTTP status of the response that ended the follow-up, if a response ended it. */
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
  'needs-decision': "waits for an operator's decision, and continues to read the job",
  watching: 'the message was sent; reads the job until the turn has ended',
  confirming: 'the job has a terminal status; reads the job until the status is accepted (maxStaleness)',
  'waiting-for-link': 'the job is completed; waits for its pull request link (prLinkTimeout)',
  unauthorized: 'tries again until the agent service accepts the API key',
  done: 'none; the result is the final job',
  failed: 'none; the follow-up has ended, and its failure has the reason (in the Web UI under Event History)',
  cancelled: 'none; the follow-up was cancelled, and the agent continues if the message arrived',
} as const;
export type Phase = keyof typeof PHASE_ACTIONS;
export const PHASES = Object.keys(PHASE_ACTIONS) as readonly Phase[];
/** The phases of follow-ups that have not ended. */
export const OPEN_PHASES = PHASES.filter((phase) => !['done', 'failed', 'cancelled'].includes(phase));

/**
 * The result of the query `progress` and of the updates. The counts do not include the reads of a pending `pollJob`. The client
 * adds these reads from the Temporal server's description of the workflow.
 */
export interface FollowUpProgress extends Pick<Receipt, 'evidence' | 'responseCounts' | 'polls'> {
  /** The delivery. While the message is being sent, the verdict is `unknown`, and `sends` includes this send. */
  readonly delivery: Delivery;
  /** The delivery that applies if the Temporal server has recorded no send permission. Only set while the message is being sent. */
  readonly deliveryBeforeSend?: Delivery | undefined;
  readonly phase: Phase;
  readonly job: AgentJob | null;
  /** When the next read is due. The value is null while no read is planned. */
  readonly nextPollAt: string | null;
  readonly deadlineAt: string;
  /** The reason why it is unknown whether the message arrived. */
  readonly deliveryUnknownReason?: string | undefined;
  /**
   * The latest response, error or reason to wait, such as `completed`, `http 503: try later` or `ECONNREFUSED`. The value is null
   * before the first of these.
   */
  readonly lastResponse: string | null;
}

const WAIT_ADVICE =
  'nothing; if the last response is an error that persists, fix its cause. A cancellation ends the follow-up, but does not stop the agent';
const WAIT_FOR_LOCK_ADVICE =
  'nothing; if the last response names a follow-up that holds the job lock, cancel that follow-up to send sooner';
const NEW_KEY_ADVICE =
  'give the workers a valid AGENT_API_KEY or AGENT_API_KEY_FILE; the follow-up then continues automatically';
const UNKNOWN_STATUS_REASON =
  'this version does not know the status of the job, so the status does not end the follow-up; the agent may wait for a person';
const UNKNOWN_STATUS_ADVICE = 'check the job in the agent service; the follow-up continues to read the job';
const RETRY_ADVICE =
  'fix the cause, then run `agent-follow-up retry` with the workflow ID to send the message. To send a corrected request, use a new request ID';

/** A cancellation has no cause that an operator must fix. */
const CANCELLED_UNSENT_ADVICE =
  'to send the message nevertheless, run `agent-follow-up retry` with the workflow ID';

const ADVICE_BY_VERDICT: Readonly<Record<Verdict, string>> = {
  'not-sent': RETRY_ADVICE,
  rejected: RETRY_ADVICE,
  unknown: 'check the job; if the message did not arrive, send it again with a new request ID',
  accepted: 'check the job, because the agent may still work on the message',
};

/**
 * Returns table rows with the phase, its reason and the required action.
 *
 * @param decide how an operator resolves an unknown delivery, as an instruction
 */
export function phaseRows(
  {
    phase,
    deliveryUnknownReason,
    delivery,
    job,
  }: Pick<FollowUpProgress, 'phase' | 'deliveryUnknownReason' | 'delivery' | 'job'>,
  decide: string,
): (readonly [name: string, value: string])[] {
  const rows: [string, string][] = [['phase', phase]];
  // A worker of a later version may report a phase that this client does not know.
  if (!PHASES.includes(phase))
    return [...rows, ['action', 'unknown, because the worker is newer than this client; update the client']];
  rows.push(['action', PHASE_ACTIONS[phase]]);
  if (phase === 'needs-decision') {
    const reason = `it is unknown whether the message arrived: ${deliveryUnknownReason ?? 'the send has no response'}`;
    const effect =
      'With delivered, the watch starts. With not-delivered, the message is sent once more, unless a read shows that it arrived';
    return [...rows, ['why', reason], ['what to do', `check the job, then decide: ${decide}. ${effect}`]];
  }
  if (phase === 'unauthorized') {
    const reason = "the agent service rejects the worker's API key; the last response has the error text";
    return [...rows, ['why', reason], ['what to do', NEW_KEY_ADVICE]];
  }
  if (phase === 'done') return rows;
  const isOver = phase === 'failed' || phase === 'cancelled';
  if (!isOver && job !== null && !isKnownStatus(job.status))
    return [...rows, ['why', UNKNOWN_STATUS_REASON], ['what to do', UNKNOWN_STATUS_ADVICE]];
  if (isOver) return [...rows, ['what to do', getAdviceAfterEnd(delivery, phase === 'cancelled')]];
  return [...rows, ['what to do', phase === 'waiting-for-job' ? WAIT_FOR_LOCK_ADVICE : WAIT_ADVICE]];
}

/** Returns the required action for a follow-up that ended without a final job. */
export function getAdviceAfterEnd({ verdict }: Pick<Delivery, 'verdict'>, isCancelled: boolean): string {
  if (isCancelled && verdict === 'not-sent') return CANCELLED_UNSENT_ADVICE;
  return verdict in ADVICE_BY_VERDICT ? ADVICE_BY_VERDICT[verdict] : ADVICE_BY_VERDICT.unknown;
}

/** An operator's decision about an unknown delivery. */
export const DELIVERY_DECISIONS = ['delivered', 'not-delivered'] as const;
export type DeliveryDecision = (typeof DELIVERY_DECISIONS)[number];
