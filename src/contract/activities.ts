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

/** The worker's task queues and timeouts. They are recorded in the history, so that a replay uses the same ones. */
export interface WorkerSettings {
  readonly readTaskQueue: string;
  readonly sendTaskQueue: string;
  /** The timeout of one HTTP request, in milliseconds. */
  readonly httpTimeoutMs: number;
  /** Whether the worker has a receiver of notifications. */
  readonly notify?: boolean | undefined;
}

export type JobAddress = Pick<FollowUpRequest, 'projectId' | 'jobId'>;

const requestFailure = {
  /** One word for counts: `http_503`, `timeout`, `ECONNREFUSED`, `not_a_job`, … */
  label: text,
  /** One sentence for operators, of limited length and without the API key. */
  message: text,
  /** The status with which the agent service itself responded. */
  httpStatus: optional(number),
  /** The status of a response that came from a gateway, and not from the agent service. */
  gatewayStatus: optional(number),
  /** The error text of the agent service. */
  serviceMessage: optional(text),
  /** The wait that the agent service asked for, in milliseconds, without a limit. */
  retryAfterMs: optional(number),
  /** The cause is a configuration error: every repetition would fail in the same way. */
  isPermanent: optional(boolean),
};
export const isRequestFailure = objectOf(requestFailure);
/** Why one request did not bring the job. */
export type RequestFailure = Checked<typeof isRequestFailure>;

/** The response to one read. A failure only postpones the next read, and is never the job's failure. */
export const isJobResponse = unionOf(
  objectOf({ kind: literalOf('job'), job: isAgentJob }),
  objectOf({ kind: literalOf('failure'), ...requestFailure }),
);
export type JobResponse = Checked<typeof isJobResponse>;

export interface PollJobInput extends JobAddress {
  /** The job as the workflow knows it: any other response ends the activity. */
  readonly lastState: JobState;
  /** When the first read is due, in milliseconds since the epoch. */
  readonly firstReadAt: number;
  /** When a read decides something whatever it returns, in milliseconds since the epoch: that read ends the activity. */
  readonly decidesAt: number;
  /** When the turn (or the wait for an idle job) started, in milliseconds since the epoch: the interval grows with its age. */
  readonly pollingStartedAt: number;
  readonly polling: Polling;
  /** The number of polls before this activity, for its messages. */
  readonly pollsBefore: number;
}

/** How many reads `pollJob` has made before an attempt. The first attempt only waits, and each later one makes one read. */
export function countReadsBeforeAttempt(attempt: number): number {
  return Math.max(0, attempt - 2);
}

/** Sums of such numbers stay counts. */
const isReadCount: Check<number> = (value): value is number => count(value) && value <= 2 ** 32;

/** The first detail of a failure of the type `PollAgain`: how many reads the activity has made. */
export const isPollProgress = objectOf({ reads: isReadCount });

export const isPollJobResult = objectOf({
  /** How many reads the activity made, including the one that ended it. */
  reads: isReadCount,
  /** The response that differs from the known job. */
  response: isJobResponse,
  /** When the read that ended the activity was requested at the earliest, by the Temporal server's clock. */
  requestedAt: time,
});
export type PollJobResult = Checked<typeof isPollJobResult>;

/** The follow-up that holds a job lock. A retry of the follow-up has another first run, and is another holder. */
export const isJobLockHolder = objectOf({ workflowId: text, firstRunId: text });
export type JobLockHolder = Checked<typeof isJobLockHolder>;

export interface SendInput extends JobAddress {
  readonly prompt: string;
  readonly whenActive: WhenActive;
  /** The only run that may make the POST: the first run, or the run that an operator named. */
  readonly permittedRunId: string;
  /** The job before an earlier POST of unknown delivery, if there was one. */
  readonly earlierBaseline: JobState | null;
  /** No POST starts at this time or later, in milliseconds since the epoch. */
  readonly deadlineAt: number;
  /** The first run of the follow-up, which holds the job lock. */
  readonly firstRunId: string;
}

/** What one POST proved; docs/guarantees.md has the table. */
const isPostOutcome = unionOf(
  objectOf({ verdict: literalOf('accepted'), job: isAgentJob }),
  objectOf({ verdict: literalOf('rejected', 'unknown'), ...requestFailure }),
  objectOf({
    verdict: literalOf('not-sent'),
    ...requestFailure,
    /** The agent service received the request and did not process it (429, 401). The POST then counts as a send. */
    reachedService: boolean,
  }),
);
export type PostOutcome = Checked<typeof isPostOutcome>;

/** The outcome of a POST that was not reported. @param reason one sentence */
export function createUnreportedOutcome(reason: string): PostOutcome {
  return { verdict: 'unknown', label: 'no_report', message: singleLine(reason, 300) };
}

const checkpoint = {
  /** The job right before the POST; null if it is not known. */
  baseline: orNull(isAgentJob),
  /** When the POST started, by the worker's clock. */
  sentAt: time,
};

/**
 * How long a send permission is valid, in milliseconds: less than the 15 s that the start-to-close timeout of a send leaves besides
 * its two HTTP requests.
 */
export const SEND_PERMISSION_MS = 10_000;

/** The details of the heartbeat with which the Temporal server grants the send permission. No POST starts without it. */
export const isSendCheckpoint = objectOf(checkpoint);
export type SendCheckpoint = Checked<typeof isSendCheckpoint>;

const isPostedSendOutcome = objectOf({ kind: literalOf('posted'), ...checkpoint, outcome: isPostOutcome });
export type PostedSendOutcome = Checked<typeof isPostedSendOutcome>;

/** How one send activity ended. Only `posted` and `reset` mean that a message may have been sent. */
const isSendOutcome = unionOf(
  /** Another follow-up holds the job lock. */
  objectOf({ kind: literalOf('lock-held'), holder: isJobLockHolder }),
  /** The baseline read failed; or a cool-down, the deadline or the Temporal server does not allow the POST now. */
  objectOf({
    kind: literalOf('not-read', 'postponed'),
    ...requestFailure,
    /** The baseline read, if it returned the job. */
    job: optional(isAgentJob),
  }),
  /** `decideSend` does not allow the POST for this job. */
  objectOf({ kind: literalOf('job-not-ready'), job: isAgentJob }),
  /** Another run has the permit, and the run before this one may have sent the message. */
  objectOf({ kind: literalOf('reset'), ...requestFailure, baseline: orNull(isAgentJob) }),
  isPostedSendOutcome,
);
export type SendOutcome = Checked<typeof isSendOutcome>;

export const isSendResult = objectOf({
  outcome: isSendOutcome,
  /** The run ID of the job lock that this follow-up holds; null if it holds none. */
  lockRunId: orNull(text),
});
export type SendResult = Checked<typeof isSendResult>;

/** What the Temporal server has recorded of a send that is stopped, at a moment after which it grants no permission. */
export const isSendRecord = unionOf(
  objectOf({ kind: literalOf('checkpoint'), ...checkpoint }),
  objectOf({ kind: literalOf('nothing') }),
  objectOf({ kind: literalOf('unknown') }),
);
export type SendRecord = Checked<typeof isSendRecord>;

export interface FollowUpReference {
  readonly workflowId: string;
  /** Of the prompt that the follow-up must carry. */
  readonly promptDigest: string;
  /** A run from before, with another prompt, is not the asker's own. @default 0 */
  readonly foreignIfStartedBefore?: number;
  /** The result or the failure itself, and not only how it ended. @default false */
  readonly shouldIncludeResult?: boolean;
}

/** The activities as the workflows see them. Activities that wait are retried, with failures of the type `PollAgain`. */
export interface FollowUpActivities {
  workerSettings(): Promise<WorkerSettings>;
  /** Reads the job once. */
  getJob(address: JobAddress): Promise<JobResponse>;
  /** Reads the job with each attempt after the first, until the response differs from the known job, or until a read decides. */
  pollJob(input: PollJobInput): Promise<PollJobResult>;
  /** Returns how many reads the pending `pollJob` of this run has made. */
  countPollReads(): Promise<number>;
  /** Acquires the job lock, reads the job, and makes one POST if the job and the Temporal server allow it. */
  sendMessage(input: SendInput): Promise<SendResult>;
  /** Keeps the pending `sendMessage` of this run from starting, and returns what it has recorded. */
  stopSend(): Promise<SendRecord>;
  /** Waits until the job lock is free, and acquires it. @returns the lock's run ID */
  waitForJobLock(job: JobAddress, holder: JobLockHolder): Promise<string>;
  /** Ends the lock workflow. @param lockRunId null if it is not known whether the follow-up holds the lock */
  releaseJobLock(job: JobAddress, holder: JobLockHolder, lockRunId: string | null): Promise<void>;
  /** Waits for a result, for another client's workflow. @throws ApplicationFailure as `ChildFollowUp.result` */
  followUpResult(followUp: FollowUpReference): Promise<FollowUpResult>;
}

/** A webhook message, as Standard Webhooks 1.0.0 defines it. docs/notifications.md has the fields of `data`; none has the prompt. */
export interface Notification {
  readonly type: 'follow-up.ended' | 'follow-up.needs-decision' | 'follow-up-batch.ended';
  /** When it happened, ISO 8601 in UTC. */
  readonly timestamp: string;
  readonly data: { readonly workflowId: string } & Readonly<Record<string, string | number | null>>;
}

export interface NotificationActivities {
  postNotification(notification: Notification): Promise<void>;
}
