import { unionOf, type Check, type Checked, count, objectOf, literalOf, time } from './checks';
import { isAgentJob, type JobState } from './job';
import type { FollowUpRequest, Polling, WhenActive } from './request';
import type { FollowUpResult } from './result';
import { requestFailure } from './request-failure';
import type { JobLockHolder, SendRecord, SendResult } from './send-result';

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

export interface FollowUpReference {
  readonly workflowId: string;
  /** The SHA-256 of the expected prompt, in hexadecimal digits. A follow-up with another prompt is a conflict. */
  readonly promptDigest: string;
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
