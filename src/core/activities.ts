import {
  anyOf,
  boolean,
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
  time,
} from './checks';
import { isAgentJob, type JobState } from './job';
import type { FollowUpRequest, Polling, WhenActive } from './request';
import type { FollowUpResult } from './result';

/** Of the worker's configuration, recorded in history for a replay. */
export const isWorkerSettings = fields({
  readTaskQueue: text,
  sendTaskQueue: text,
  /** Of one HTTP exchange. */
  httpTimeoutMs: number,
  /** Of one `pollJob`. */
  pollLimitMs: number,
  /** There is a receiver of notices. */
  notify: optional(boolean),
});
export type WorkerSettings = Checked<typeof isWorkerSettings>;

export type JobAddress = Pick<FollowUpRequest, 'projectId' | 'jobId'>;

interface ReadInput extends JobAddress {
  /** Also while the service wants quiet: a person asks, or it is the last read. @default false */
  readonly insist?: boolean;
}

const trouble = {
  /** For its count: `http 503`, `timeout`, `ECONNREFUSED`, `not a job`, … */
  label: text,
  /** A sentence, bounded, without the key. */
  message: text,
  httpStatus: optional(number),
  /** The service's own words. */
  serviceMessage: optional(text),
};

const readTrouble = fields({
  kind: oneOf('trouble'),
  ...trouble,
  /** What the service asked for, unbounded. */
  retryAfterMs: optional(number),
});
export type ReadTrouble = Checked<typeof readTrouble>;
export type SendTrouble = Omit<ReadTrouble, 'kind' | 'retryAfterMs'>;

/** Trouble is an answer too: it is a delay, never the job's failure. */
export const isJobAnswer = anyOf(fields({ kind: oneOf('job'), job: isAgentJob }), readTrouble);
export type JobAnswer = Checked<typeof isJobAnswer>;

/** The latest answers that said nothing about the job. */
export const isTrouble = fields({
  last: orNull(readTrouble),
  count,
  /** Those that were a 404, in a row up to the latest one. */
  notFound: orNull(fields({ count, since: time })),
});
export type Trouble = Checked<typeof isTrouble>;

/** Times are by the workflow's clock. */
export interface PollJobInput extends JobAddress {
  /** Another answer ends the poll. */
  readonly known: JobState;
  /** When the turn, or the wait for it, began: the interval grows with its age. */
  readonly since: number;
  readonly polling: Polling;
  readonly trouble: Trouble;
  readonly firstWaitMs: number;
  /** No read begins then or later. */
  readonly endsAt: number;
}

/** Far below what numbers count exactly, so that sums stay counts. */
const reads: Check<number> = (value): value is number => count(value) && value <= 2 ** 32;

/** Of the answers that changed nothing. */
export const isTally = fields({
  polls: reads,
  observed: mapOf(reads),
  trouble: isTrouble,
  lastAnswer: orNull(text),
  nextReadAt: orNull(time),
});
export type Tally = Checked<typeof isTally>;

export const isPollJobResult = fields({
  /** The answer that needs a decision; null if the time was over. */
  answer: orNull(isJobAnswer),
  /** The answer was asked for then or later, by the server's clock; 0 without one. */
  askedAt: time,
  before: isTally,
});
export type PollJobResult = Checked<typeof isPollJobResult>;

interface SendInput extends ReadInput {
  readonly prompt: string;
  readonly whenActive: WhenActive;
  /** The first run, or the one that an operator named. A reset has made any other: the run before it may have sent. */
  readonly permittedRunId: string;
  /** The job before an earlier POST of unknown delivery, if there was one. */
  readonly earlierBaseline: JobState | null;
}

/** What one POST proved (docs/guarantees.md). */
const postOutcome = anyOf(
  fields({ verdict: oneOf('accepted'), job: isAgentJob }),
  fields({ verdict: oneOf('rejected', 'unknown'), ...trouble }),
  fields({
    verdict: oneOf('not-sent'),
    ...trouble,
    /** False for a configuration error. */
    repeatable: boolean,
    /** By a 429: the POST counts as a send, although it was not processed. */
    answered: boolean,
    retryAfterMs: optional(number),
  }),
);
export type PostOutcome = Checked<typeof postOutcome>;

const checkpoint = {
  /** The job right before the POST; null where it is not known. */
  baseline: orNull(isAgentJob),
  /** When the POST began, by the worker's clock. */
  sentAt: time,
};

/** The details of a send's one heartbeat, recorded before the POST: they alone show that it may have begun. */
export const isSendCheckpoint = fields(checkpoint);
export type SendCheckpoint = Checked<typeof isSendCheckpoint>;

const posted = fields({ kind: oneOf('posted'), ...checkpoint, outcome: postOutcome });
export type Posted = Checked<typeof posted>;

/** Only `posted` may have sent anything. */
export const isSendResult = anyOf(
  fields({ kind: oneOf('unread'), trouble: readTrouble }),
  /** `decideSend` forbids the POST. */
  fields({ kind: oneOf('held-back'), job: isAgentJob }),
  /** The server no longer wants the send, or has not taken it up by the deadline. */
  fields({ kind: oneOf('not-permitted'), message: text }),
  /** Another run is permitted, and the one before this may have sent the message. */
  fields({ kind: oneOf('reset'), ...trouble, baseline: orNull(isAgentJob) }),
  posted,
);
export type SendResult = Checked<typeof isSendResult>;

/** What the server knows of a pending activity. */
export interface PendingDetails {
  /** Of its latest heartbeat: a {@link Tally} or a {@link SendCheckpoint}, or null. */
  readonly details: unknown;
  /** A worker has taken the attempt up. */
  readonly started: boolean;
  /** How the attempt before has failed, in at most 300 characters, or null. */
  readonly failure: string | null;
}

export interface NamedFollowUp {
  readonly workflowId: string;
  /** Of the prompt that the follow-up must carry. */
  readonly promptDigest: string;
  /** The asker has started none of this name before: a run from before, with another prompt, is not its own. @default 0 */
  readonly foreignBefore?: number;
  /** The result or the failure itself, and not only how it ended. @default false */
  readonly wantsResult?: boolean;
}

/** The follow-up that has a turn, in all of its runs; a retry of it is another one. */
export const isTurnHolder = fields({ workflowId: text, firstRunId: text });
export type TurnHolder = Checked<typeof isTurnHolder>;

/** The activities as the workflows see them. Those that wait are retries of themselves, by failures of the type `NO_CHANGE`. */
export interface FollowUpActivities {
  /** Local. */
  workerSettings(): Promise<WorkerSettings>;
  getJob(read: ReadInput): Promise<JobAnswer>;
  /** Reads until an answer `needsDecision`; in the worker's process, or as retries. */
  pollJob(input: PollJobInput): Promise<PollJobResult>;
  /** Local, of an activity of this run. It ends a `pollJob` in this process. */
  pendingDetails(activity: string): Promise<PendingDetails>;
  /** Waits for a result, for somebody else's workflow. @throws ApplicationFailure as `ChildFollowUp.result` */
  followUpResult(followUp: NamedFollowUp): Promise<FollowUpResult>;
  /** Takes the turn at a job, or waits for it. */
  takeTurn(job: JobAddress, holder: TurnHolder): Promise<void>;
  /** Waits until a follow-up has ended. */
  awaitEnd(holder: TurnHolder): Promise<void>;
  /** Looks at the job, and makes one POST if the job and the server allow it. */
  sendMessage(input: SendInput): Promise<SendResult>;
}
