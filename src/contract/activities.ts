import {
  unionOf,
  boolean,
  type Check,
  type Checked,
  count,
  objectOf,
  number,
  literalOf,
  optional,
  orNull,
  text,
  time,
} from './checks';
import { isAgentJob, type JobState } from './job';
import type { FollowUpRequest, Polling, WhenActive } from './request';
import type { FollowUpResult } from './result';
import { singleLine } from './text';

/** The worker's task queues and timeouts. The history records them, so that a replay uses the same values. */
export interface WorkerSettings {
  readonly readTaskQueue: string;
  readonly sendTaskQueue: string;
  /** The timeout of one HTTP request, in milliseconds. */
  readonly httpTimeoutMs: number;
  /** Whether the worker sends notifications to a receiver. @default false */
  readonly notify?: boolean | undefined;
}

/** The two IDs that identify a job at the agent service. */
export type JobAddress = Pick<FollowUpRequest, 'projectId' | 'jobId'>;

const requestFailure = {
  /** The key of the failure in counts and metrics: `http_503`, `timeout`, `ECONNREFUSED`, `not_a_job`, … */
  label: text,
  /** A sentence for operators, which has a limited length and never the API key. */
  message: text,
  /** The HTTP status. The field is absent without a response, and in a response with `gatewayStatus`. */
  httpStatus: optional(number),
  /** The status of a read's 400, 401, 403 or 404 without a JSON object, which probably comes from a gateway. */
  gatewayStatus: optional(number),
  /** The error text of the agent service. */
  serviceMessage: optional(text),
  /** The value of `Retry-After` in milliseconds, as the agent service sent it: no minimum or maximum is applied. */
  retryAfterMs: optional(number),
  /** Whether a rate limit of the agent service prevented the request: the response is 429, or 403 with `Retry-After`. */
  isRateLimit: optional(boolean),
  /**
   * Whether a POST failed because of a configuration error, so that every repetition would fail. No read sets this field, because
   * a read that fails for such a reason is repeated.
   */
  isPermanent: optional(boolean),
};
export const isRequestFailure = objectOf(requestFailure);
/** Why one HTTP request did not return the job. */
export type RequestFailure = Checked<typeof isRequestFailure>;

/**
 * The result of one read: the job, or why the read did not return the job. A failed read is returned as a value, and does not
 * change the job's status. Usually, `nextStep` then only postpones the next read.
 */
export const isJobResponse = unionOf(
  objectOf({ kind: literalOf('job'), job: isAgentJob }),
  objectOf({ kind: literalOf('failure'), ...requestFailure }),
);
export type JobResponse = Checked<typeof isJobResponse>;

export interface PollJobInput extends JobAddress {
  /**
   * The job in the workflow's latest readable response. A response with another state ends the activity, and so does a failed
   * read.
   */
  readonly lastState: JobState;
  /** When the first read is due, in milliseconds since the epoch. */
  readonly firstReadAt: number;
  /**
   * The time from which on the workflow needs the response of every read, in milliseconds since the epoch. A read that is
   * requested at this time or later ends the activity, even if the job is unchanged.
   */
  readonly decidesAt: number;
  /** When the turn or the wait for an idle job started, in milliseconds since the epoch. The poll interval grows with this age. */
  readonly pollingStartedAt: number;
  readonly polling: Polling;
  /** The number of polls before this activity. The messages of the activity's failures contain it. */
  readonly pollsBefore: number;
}

/**
 * Returns how many reads `pollJob` has made before an attempt. The first attempt only waits, and each later attempt makes one
 * read.
 *
 * @param attempt the number of the attempt, from 1
 */
export function countReadsBeforeAttempt(attempt: number): number {
  return Math.max(0, attempt - 2);
}

/** The limit keeps sums of these numbers within the safe integers of `count`. */
const isReadCount: Check<number> = (value): value is number => count(value) && value <= 2 ** 32;

/** The first detail of a `PollAgain` failure of `pollJob`: the number of reads that the activity has made. */
export const isPollProgress = objectOf({ reads: isReadCount });

export const isPollJobResult = objectOf({
  /** How many reads the activity made, including the read that ended the activity. */
  reads: isReadCount,
  /** The response of the read that ended the activity: it differs from the known job, or `decidesAt` has passed. */
  response: isJobResponse,
  /** A lower bound of the time at which the read that ended the activity was requested, by the Temporal server's clock. */
  requestedAt: time,
});
export type PollJobResult = Checked<typeof isPollJobResult>;

/** The follow-up that holds a job lock. A retry of the follow-up has another first run, so it is another holder. */
export const isJobLockHolder = objectOf({ workflowId: text, firstRunId: text });
export type JobLockHolder = Checked<typeof isJobLockHolder>;

export interface SendInput extends JobAddress {
  readonly prompt: string;
  readonly whenActive: WhenActive;
  /** The only run that may make the POST: the first run, or the run that an operator named. */
  readonly permittedRunId: string;
  /**
   * The job before an earlier POST of unknown delivery, if the baseline read of this send is fresh for that POST; otherwise
   * null.
   */
  readonly earlierBaseline: JobState | null;
  /** The time from which on no send is permitted, in milliseconds since the epoch. */
  readonly deadlineAt: number;
  /** The ID of the follow-up's first run, which identifies the holder of the job lock. */
  readonly firstRunId: string;
}

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

export interface FollowUpReference {
  readonly workflowId: string;
  /** The SHA-256 of the expected prompt, in hexadecimal digits. A follow-up with another prompt is a conflict. */
  readonly promptDigest: string;
  /**
   * A time in milliseconds since the epoch. If the run started before this time and has another prompt, the run belongs to
   * another client. @default 0
   */
  readonly foreignIfStartedBefore?: number;
  /** Whether the lookup also returns the result or the failure of the workflow, in addition to its outcome. @default false */
  readonly shouldIncludeResult?: boolean;
}

/**
 * The activities as workflows call them. An activity that waits fails with the type `PollAgain`, and the Temporal server starts
 * the next attempt after the wait.
 */
export interface FollowUpActivities {
  /** Returns the settings of the worker that runs the activity. */
  workerSettings(): Promise<WorkerSettings>;
  /** Reads the job once. */
  getJob(address: JobAddress): Promise<JobResponse>;
  /** Reads the job with each attempt after the first, until the response differs from the known job or `decidesAt` has passed. */
  pollJob(input: PollJobInput): Promise<PollJobResult>;
  /** Returns how many reads the pending `pollJob` of this run has made. */
  countPollReads(): Promise<number>;
  /** Acquires the job lock, reads the job, and makes one POST if the job and the Temporal server allow it. */
  sendMessage(input: SendInput): Promise<SendResult>;
  /**
   * Returns the record that the Temporal server has of this run's pending `sendMessage`. Unless an attempt is running, the
   * activity first prevents a further attempt.
   */
  stopSend(): Promise<SendRecord>;
  /** Waits until the job lock is free, and acquires it. @returns the lock's run ID */
  waitForJobLock(job: JobAddress, holder: JobLockHolder): Promise<string>;
  /**
   * Releases the job lock by terminating its workflow.
   *
   * @param lockRunId null if it is not known whether the follow-up holds the lock
   */
  releaseJobLock(job: JobAddress, holder: JobLockHolder, lockRunId: string | null): Promise<void>;
  /**
   * Waits for the result of a follow-up on behalf of another workflow.
   *
   * @throws ApplicationFailure as documented at `ChildFollowUp.result`
   */
  followUpResult(followUp: FollowUpReference): Promise<FollowUpResult>;
}

/**
 * A webhook message in the format of Standard Webhooks 1.0.0. docs/notifications.md describes the fields of `data`. No field has
 * the prompt.
 */
export interface Notification {
  readonly type: 'follow-up.ended' | 'follow-up.needs-decision' | 'follow-up-batch.ended';
  /** The time of the event as ISO 8601 in UTC. */
  readonly timestamp: string;
  readonly data: {
    readonly workflowId: string;
    /** The run that ended or needs a decision. A retry is another run of the same workflow. */
    readonly runId: string;
    readonly outcome: string | null;
    /** The message of the failure or the cancellation, or the reason why the delivery is unknown. The value is null for a result. */
    readonly message: string | null;
  } & Readonly<Record<string, string | number | null>>;
}

export interface NotificationActivities {
  /**
   * Posts one notification to the receiver.
   *
   * @throws ApplicationFailure `NotificationFailed`, or `ReceiverGone` if the receiver returned 410
   */
  postNotification(notification: Notification): Promise<void>;
}
