import { unionOf, boolean, type Checked, objectOf, literalOf, optional, orNull, text, time } from './checks';
import { isAgentJob } from './job';
import { requestFailure } from './request-failure';
import { singleLine } from './text';

/** The follow-up that holds a job lock. A retry of the follow-up has another first run, so it is another holder. */
export const isJobLockHolder = objectOf({ workflowId: text, firstRunId: text });
export type JobLockHolder = Checked<typeof isJobLockHolder>;

/**
 * The verdict that follows from one POST. docs/guarantees.md has the table of all cases.
 *
 * A `SendResult` is the report of a send activity. Its field `outcome` is a `SendOutcome`, which states how the activity ended.
 * If the activity made a POST, the `SendOutcome` is a `PostedSendOutcome`, and its field `outcome` is the `PostOutcome`.
 */
const isPostOutcome = unionOf(
  objectOf({ verdict: literalOf('accepted'), job: isAgentJob }),
  objectOf({ verdict: literalOf('rejected', 'unknown'), ...requestFailure }),
  objectOf({
    verdict: literalOf('not-sent'),
    ...requestFailure,
    /**
     * Whether the agent service received the request and did not process it (for example 429 or 401). The POST then counts as a
     * send.
     */
    reachedService: boolean,
  }),
);
export type PostOutcome = Checked<typeof isPostOutcome>;

const NO_REPORT = 'no_report';

/** Creates the outcome of a POST that no worker reported. @param reason one sentence */
export function createUnreportedOutcome(reason: string): PostOutcome {
  return { verdict: 'unknown', label: NO_REPORT, message: singleLine(reason, 300) };
}

/** Returns whether no worker reported the POST, so that the POST may still be in progress. */
export function isUnreported(outcome: PostOutcome): boolean {
  return outcome.verdict === 'unknown' && outcome.label === NO_REPORT;
}

const checkpoint = {
  /** The job right before the POST. The value is null if the job is not known. */
  baseline: orNull(isAgentJob),
  /** When the POST started or, in a heartbeat, when its send permission was requested, by the worker's clock. */
  sentAt: time,
};

/**
 * The time in addition to the HTTP timeouts, in milliseconds, in which a worker starts an attempt, makes its requests to the
 * Temporal server, and reports its result.
 */
export const REPORT_MARGIN_MS = 15_000;

/** How long a send permission is valid, in milliseconds. The value must be less than {@link REPORT_MARGIN_MS}. */
export const SEND_PERMISSION_MS = 10_000;

/**
 * The details of the heartbeat that requests the send permission. No POST starts before the Temporal server has accepted this
 * heartbeat.
 */
const isSendCheckpoint = objectOf(checkpoint);
export type SendCheckpoint = Checked<typeof isSendCheckpoint>;

const isPostedSendOutcome = objectOf({ kind: literalOf('posted'), ...checkpoint, outcome: isPostOutcome });
export type PostedSendOutcome = Checked<typeof isPostedSendOutcome>;

/** How one send activity ended. A message may have been sent only if the kind is `posted` or `reset`. */
const isSendOutcome = unionOf(
  /** Another follow-up holds the job lock. */
  objectOf({ kind: literalOf('lock-held'), holder: isJobLockHolder }),
  /**
   * `not-read`: the baseline read failed. `postponed`: the POST is not allowed now, because of a cool-down or the deadline,
   * because too little time is left in the attempt, or because the Temporal server did not grant the send permission. The kind is
   * also `postponed` if no worker started the send, if the attempts of a stopped send failed before the permission, or if an
   * operator paused or reset the activity itself.
   */
  objectOf({
    kind: literalOf('not-read', 'postponed'),
    ...requestFailure,
    /** The job, if the baseline read returned it. */
    job: optional(isAgentJob),
  }),
  /** `decideSend` does not allow the POST, because of the job's status, or because the job shows that an earlier POST arrived. */
  objectOf({ kind: literalOf('job-not-ready'), job: isAgentJob }),
  /** A workflow reset made this run, so the permit names another run. That run may have sent the message. */
  objectOf({ kind: literalOf('reset'), ...requestFailure, baseline: orNull(isAgentJob) }),
  isPostedSendOutcome,
);
export type SendOutcome = Checked<typeof isSendOutcome>;

export const isSendResult = objectOf({
  outcome: isSendOutcome,
  /**
   * The run ID of the job lock that the attempt acquired. The value is null if the attempt acquired no lock or does not know
   * the run ID.
   */
  lockRunId: orNull(text),
});
export type SendResult = Checked<typeof isSendResult>;

/**
 * The record that the Temporal server has of a pending send: its checkpoint, nothing, or not known. If the kind is `nothing`, the
 * Temporal server grants no send permission after the record was read.
 */
export type SendRecord =
  | ({ readonly kind: 'checkpoint' } & SendCheckpoint)
  /** `lastFailure` is the failure of the latest attempt, if there was an attempt. */
  | { readonly kind: 'nothing'; readonly lastFailure?: string }
  | { readonly kind: 'unknown' };

/**
 * Parses the heartbeat details of a send. Details of another form are `unknown`, because another client may have recorded them
 * after a POST.
 *
 * @param withoutDetails the record if the send has no heartbeat details
 */
export function toSendRecord(details: unknown, withoutDetails: SendRecord): SendRecord {
  if (details === null || details === undefined) return withoutDetails;
  return isSendCheckpoint(details) ? { kind: 'checkpoint', ...details } : { kind: 'unknown' };
}
