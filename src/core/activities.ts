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
import { singleLine } from './text';

/** Recorded in history for a replay. The limits are of one HTTP exchange and of one `pollJob`. */
export const isWorkerSettings = fields({
  readTaskQueue: text,
  sendTaskQueue: text,
  httpTimeoutMs: number,
  pollLimitMs: number,
  /** There is a receiver of notices. */
  notify: optional(boolean),
});
export type WorkerSettings = Checked<typeof isWorkerSettings>;

export type JobAddress = Pick<FollowUpRequest, 'projectId' | 'jobId'>;

export interface ReadInput extends JobAddress {
  /** Also while the service wants quiet: a person asks, or it is the last read. @default false */
  readonly insist?: boolean | undefined;
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
/** What the service, or a lack of it, has said instead of the job. */
export type SendTrouble = Checked<ReturnType<typeof fields<typeof trouble>>>;

/** What the service asked for, unbounded. */
const retryAfterMs = optional(number);

const readTrouble = fields({ kind: oneOf('trouble'), ...trouble, retryAfterMs });
export type ReadTrouble = Checked<typeof readTrouble>;

/** Trouble is an answer too: a delay, never the job's failure. */
export const isJobAnswer = anyOf(fields({ kind: oneOf('job'), job: isAgentJob }), readTrouble);
export type JobAnswer = Checked<typeof isJobAnswer>;

/** The latest answers that said nothing about the job; `notFound` are the 404s in a row up to the last one. */
export const isTrouble = fields({
  last: orNull(readTrouble),
  count,
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

/** Sums of them stay counts. */
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
  /** It needs a decision; null if the time was over. */
  answer: orNull(isJobAnswer),
  /** When it was asked for at the earliest, by the server's clock; 0 without one. */
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

/**
 * What one POST proved (docs/guarantees.md). It is not `repeatable` after a configuration error, and `answered` by a 429: then it
 * counts as a send, although it was not processed.
 */
const postOutcome = anyOf(
  fields({ verdict: oneOf('accepted'), job: isAgentJob }),
  fields({ verdict: oneOf('rejected', 'unknown'), ...trouble }),
  fields({ verdict: oneOf('not-sent'), ...trouble, repeatable: boolean, answered: boolean, retryAfterMs }),
);
export type PostOutcome = Checked<typeof postOutcome>;

export function noReport(why: string): PostOutcome {
  return { verdict: 'unknown', label: 'no report', message: singleLine(why, 300) };
}

/** The job right before the POST, null where it is not known, and when the POST began, by the worker's clock. */
const checkpoint = { baseline: orNull(isAgentJob), sentAt: time };

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
  readonly started: boolean;
  /** How the attempt before has failed, in at most 300 characters, or null. */
  readonly failure: string | null;
}

export interface NamedFollowUp {
  readonly workflowId: string;
  /** Of the prompt that the follow-up must carry. */
  readonly promptDigest: string;
  /** A run from before, with another prompt, is not the asker's own. @default 0 */
  readonly foreignBefore?: number;
  /** The result or the failure itself, and not only how it ended. @default false */
  readonly wantsResult?: boolean;
}

/** The follow-up that has a turn, in all of its runs; a retry of it is another one. */
export const isTurnHolder = fields({ workflowId: text, firstRunId: text });
export type TurnHolder = Checked<typeof isTurnHolder>;

/** The activities as the workflows see them. Those that wait are retries of themselves, by failures of the type `NO_CHANGE`. */
export interface FollowUpActivities {
  workerSettings(): Promise<WorkerSettings>;
  getJob(read: ReadInput): Promise<JobAnswer>;
  /** Reads until an answer `needsDecision`; in the worker's process, or as retries. */
  pollJob(input: PollJobInput): Promise<PollJobResult>;
  /** Of an activity of this run. It ends a `pollJob` in this process. */
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

/** What a receiver is told, by Standard Webhooks 1.0.0. docs/notify.md has the fields of `data`: never the prompt. */
export interface Notice {
  readonly type: 'follow-up.ended' | 'follow-up.needs-decision' | 'follow-up-batch.ended';
  /** When it happened, ISO 8601 in UTC. */
  readonly timestamp: string;
  readonly data: { readonly workflowId: string } & Readonly<Record<string, string | number | null>>;
}

export interface NoticeActivities {
  postNotice(notice: Notice): Promise<void>;
}
