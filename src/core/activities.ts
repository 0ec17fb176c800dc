import type { EndOfItem } from './batch';
import type { EarlierPage, PageTrouble } from './batch-workflows';
import type { AgentJob, JobState } from './job';
import type { Polling, WhenActive } from './request';

/** What the workflow must know of the worker's configuration. It is recorded in history, so that a replay knows it too. */
export interface WorkerSettings {
  readonly readTaskQueue: string;
  readonly sendTaskQueue: string;
  /** The limit of one HTTP exchange in milliseconds. */
  readonly httpTimeoutMs: number;
  /** How long one activity polls at most, in milliseconds. */
  readonly pollLimitMs: number;
  /** How often a page of a batch checks that its batch and its follow-ups exist, in milliseconds. */
  readonly lookEveryMs: number;
}

export interface JobAddress {
  readonly projectId: string;
  readonly jobId: string;
}

/** The answer to one read of the job. Trouble is an answer too: it is a delay, never the job's failure. */
export type JobAnswer = { readonly kind: 'job'; readonly job: AgentJob } | ReadTrouble;

export interface ReadTrouble {
  readonly kind: 'trouble';
  /** The short name under which it is counted: `http 503`, `timeout`, `ECONNREFUSED`, `not a job`, … */
  readonly label: string;
  /** One sentence for people, bounded, without the key. */
  readonly message: string;
  readonly httpStatus?: number;
  /** The service's own words, at most 1 KiB. */
  readonly serviceMessage?: string;
  /** The wait that the service asked for, in milliseconds, unbounded. */
  readonly retryAfterMs?: number;
}

/** The latest answers in a row that said nothing about the job. */
export interface Trouble {
  /** The latest answer, if it said nothing about the job. */
  readonly last: ReadTrouble | null;
  readonly count: number;
  /** The answers in a row, up to the latest one, that were a 404. */
  readonly notFound: { readonly count: number; readonly since: number } | null;
}

/** The input of the activity that polls. Times are milliseconds since the epoch, by the workflow's clock. */
export interface PollJobInput extends JobAddress {
  /** The job as it is known: a different answer ends the poll. */
  readonly known: JobState;
  /** When the turn, or the wait for its beginning, began: the interval grows with its age. */
  readonly since: number;
  readonly polling: Polling;
  /** The trouble before the poll begins. */
  readonly trouble: Trouble;
  /** The wait before the first read, in milliseconds. */
  readonly firstWaitMs: number;
  /** No read begins at this moment or later. */
  readonly endsAt: number;
}

/** The answers that changed nothing: trouble, and the job as it was known. They are kept from attempt to attempt, and reported at the end. */
export interface Tally {
  readonly polls: number;
  readonly observed: Readonly<Record<string, number>>;
  readonly trouble: Trouble;
  /** The latest answer in words. */
  readonly lastAnswer: string | null;
  /** When the next read is due, in milliseconds since the epoch. */
  readonly nextReadAt: number | null;
}

/** The answer that ended a poll, and those before it. */
export interface PollJobResult {
  /** The answer that needs a decision; null if the time was over. */
  readonly answer: JobAnswer | null;
  /** It was asked for at this moment or later: by the server's clock, in milliseconds since the epoch; 0 without one. */
  readonly askedAt: number;
  readonly before: Tally;
}

interface SendInput extends JobAddress {
  readonly prompt: string;
  readonly whenActive: WhenActive;
  /**
   * The one run that may send: the first run of the follow-up, or the run that an operator's decision names. Any other
   * run was made by a workflow reset, and the run before it may have sent the message.
   */
  readonly permittedRunId: string;
  /** Nothing is sent from this moment on; milliseconds since the epoch. */
  readonly deadlineAt: number;
  /** The job before an earlier POST of unknown delivery; null if there was none. */
  readonly earlierBaseline: JobState | null;
}

/** What the send activity did: it has looked at the job, and perhaps it has sent. The activity never throws. */
export type SendResult =
  /** The job could not be read. Nothing was sent. */
  | { readonly kind: 'unread'; readonly trouble: ReadTrouble }
  /** The job was read, and `decideSend` forbids the POST. Nothing was sent. */
  | { readonly kind: 'held-back'; readonly job: AgentJob }
  /** The server no longer wants the send, or the deadline has passed. Nothing was sent. */
  | { readonly kind: 'not-permitted'; readonly message: string }
  /** This run is not the permitted one. It sent nothing, and the run before it may have sent the message. */
  | ({ readonly kind: 'reset'; readonly baseline: AgentJob | null } & SendTrouble)
  | Posted;

/** A POST that may have been made. */
export interface Posted {
  readonly kind: 'posted';
  /** The job right before the POST; null if it is not known. */
  readonly baseline: AgentJob | null;
  /** When the POST began, by the worker's clock, in milliseconds since the epoch. */
  readonly sentAt: number;
  readonly outcome: PostOutcome;
}

/**
 * The details of the one heartbeat of a send. The server records them before the POST may begin. So a send that ends
 * without a report still shows whether the POST may have been made.
 */
export type SendCheckpoint = Pick<Posted, 'baseline' | 'sentAt'>;

/** What one POST proved; the rows are those of docs/guarantees.md. */
export type PostOutcome =
  | { readonly verdict: 'accepted'; readonly job: AgentJob }
  | ({ readonly verdict: 'rejected' } & SendTrouble)
  | ({
      readonly verdict: 'not-sent';
      /** False for a configuration error: repeating the POST does not help. */
      readonly repeatable: boolean;
      /** The service answered (429), so the POST counts as a send although it was not processed. */
      readonly answered: boolean;
      readonly retryAfterMs?: number;
    } & SendTrouble)
  | ({ readonly verdict: 'unknown' } & SendTrouble);

export interface SendTrouble {
  /** As in {@link ReadTrouble}. */
  readonly label: string;
  /** One sentence for people, bounded, without the key. */
  readonly message: string;
  readonly httpStatus?: number;
  readonly serviceMessage?: string;
}

/** A follow-up that may exist. */
export interface NamedFollowUp {
  readonly workflowId: string;
  /** The SHA-256 of the prompt that the follow-up must carry. */
  readonly promptDigest: string;
}

interface FollowUpEndInput extends NamedFollowUp {
  /** Cancels a running follow-up if the batch of this id has started it. Any other one is left running. */
  readonly cancelOf?: string;
}

interface PageTroubleInput {
  /** Null once the batch is known to be gone. */
  readonly batchWorkflowId: string | null;
  readonly run: string;
  /** Follow-ups that were reported before. */
  readonly known: readonly string[];
}

/** The heartbeat details for which the workflow can ask. */
export interface PendingDetails {
  readonly pollJob: Tally;
  readonly sendMessage: SendCheckpoint;
}

/** The activities as the workflows see them. */
export interface FollowUpActivities {
  /** Local: gives the workflow the worker's settings. */
  workerSettings(): Promise<WorkerSettings>;
  /** One GET of the job. */
  getJob(address: JobAddress): Promise<JobAnswer>;
  /**
   * Reads the job by the cadence until an answer needs a decision: another status, link or `archivedAt`, or a 401, 403 or
   * 404. It waits in the worker's process, or as retries of itself.
   *
   * @throws ApplicationFailure `NO_CHANGE`, retryable, with the {@link Tally} as its detail, if the server keeps the wait
   */
  pollJob(input: PollJobInput): Promise<PollJobResult>;
  /**
   * Local: the latest heartbeat details of a pending activity of this run; null if there are none. A `pollJob` in the
   * process of this worker has the latest details itself, and ends.
   */
  pendingDetails<A extends keyof PendingDetails>(activity: A): Promise<PendingDetails[A] | null>;
  /** How some follow-ups have ended, in their order, `gone` for one that does not exist, null for one that runs. */
  followUpEnds(followUps: readonly NamedFollowUp[]): Promise<readonly (EndOfItem | null)[]>;
  /**
   * The end of a follow-up that exists already. It asks again and again, as retries of itself, until the follow-up ends.
   *
   * @throws ApplicationFailure `NO_CHANGE`, retryable, while it runs
   */
  followUpEnd(input: FollowUpEndInput): Promise<EndOfItem>;
  /**
   * What became of a page in an earlier run of its batch; null if nobody can tell. A page that still runs is ended first.
   *
   * @throws ApplicationFailure `NO_CHANGE`, retryable, while it runs
   */
  earlierPage(workflowId: string): Promise<EarlierPage | null>;
  /**
   * Looks after the calling page every few minutes, as retries of itself, until there is trouble.
   *
   * @throws ApplicationFailure `NO_CHANGE`, retryable, while there is none
   */
  pageTrouble(input: PageTroubleInput): Promise<PageTrouble>;
  /** Local: the run that really calls it. A run made by a reset gets the recorded answer of the run before, up to there. */
  ownRunId(): Promise<string>;
  /** Looks at the job, and sends the message by one POST if the job, the server and the deadline allow it. */
  sendMessage(input: SendInput): Promise<SendResult>;
}
