import type { EarlierPage, FoundEnd, PageTrouble } from './batch-workflows';
import type { AgentJob, JobState } from './job';
import type { Polling } from './request';

/** What the workflow must know of the worker's configuration; recorded in history, so that a replay knows it too. */
export interface WorkerSettings {
  readonly readTaskQueue: string;
  readonly sendTaskQueue: string;
  /** The limit of one HTTP exchange in milliseconds. */
  readonly httpTimeoutMs: number;
  /**
   * How long one read activity may poll by its own retries, in milliseconds. A run whose history was recorded by 0.1.0
   * doesn't know it and polls by timers only: a replay must find what was recorded.
   */
  readonly patienceMs?: number;
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
  /** The wait that the service asked for, in milliseconds as it was sent, unbounded. */
  readonly retryAfterMs?: number;
}

/** The answers in a row that told nothing of the job, up to the latest one. */
export interface Trouble {
  /** The latest answer, where it told nothing of the job. */
  readonly last: ReadTrouble | null;
  readonly count: number;
  /** The answers in a row, up to the latest one, that were a 404. */
  readonly notFound: { readonly count: number; readonly since: number } | null;
}

/** What a read that polls by its own retries is told. */
export interface PatientReadInput extends JobAddress {
  /** The job as it is known: another answer ends the patience. */
  readonly known: JobState;
  /** When the turn, or the wait for its beginning, began: the interval grows with its age. Milliseconds since the epoch. */
  readonly since: number;
  readonly polling: Polling;
  /** The trouble with which the patience begins. */
  readonly trouble: Trouble;
}

/** The answers by which nothing has changed: kept from attempt to attempt, and told at the end. */
export interface Tally {
  readonly polls: number;
  readonly observed: Readonly<Record<string, number>>;
  /** How many of the answers showed the job, as it was known. */
  readonly sightings: number;
  readonly trouble: Trouble;
  /** The latest answer in words. */
  readonly lastAnswer: string | null;
  /** When the next attempt is due, by the worker's clock, in milliseconds since the epoch. */
  readonly nextReadAt: number | null;
}

/** The answer that ended a patience, and those before it. */
export interface PatientAnswer {
  readonly answer: JobAnswer;
  readonly before: Tally;
}

export interface SendInput extends JobAddress {
  readonly prompt: string;
  /**
   * The run in which this follow-up began. A run that differs was made by a workflow reset, and the message may have
   * been sent by the run before it. Null for a send that the caller's `resend` or an operator has allowed.
   */
  readonly firstExecutionRunId: string | null;
}

/** What one POST proved; the rows are those of docs/guarantees.md. The activity returns it and never throws. */
export type SendOutcome =
  | { readonly verdict: 'accepted'; readonly job: AgentJob }
  | ({ readonly verdict: 'rejected' } & SendTrouble)
  | ({
      readonly verdict: 'not-sent';
      /** False for a configuration error, which no repetition heals. */
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

export interface FollowUpEndInput {
  readonly workflowId: string;
  /** The SHA-256 of the prompt that the follow-up must carry. */
  readonly promptDigest: string;
  /** Cancels a follow-up that runs, if the batch of this id has started it; else it is left alone at once. */
  readonly cancelOf?: string;
}

export interface PageTroubleInput {
  /** Null once the batch is known to be gone. */
  readonly batchWorkflowId: string | null;
  readonly run: string;
  /** Follow-ups that are not to be told of again. */
  readonly known: readonly string[];
}

/** The activities as the workflows see them. */
export interface FollowUpActivities {
  /** Local: tells the workflow the worker's settings. */
  workerSettings(): Promise<WorkerSettings>;
  /** One GET of the job. */
  getJob(address: JobAddress): Promise<JobAnswer>;
  /**
   * Reads the job again and again, each time as a retry of itself, until an answer needs a decision: another status,
   * link or `archivedAt`, or a 401, 403 or 404.
   *
   * @throws ApplicationFailure `NO_CHANGE`, retryable, with the {@link Tally} as its detail, after every other answer
   */
  getJobPatiently(input: PatientReadInput): Promise<PatientAnswer>;
  /** Local: the tally of this run's patient read as the server has it; null where it has none. */
  patientTally(): Promise<Tally | null>;
  /**
   * The end of a follow-up that is there already, asked for again and again, as retries of itself, until it has ended.
   *
   * @throws ApplicationFailure `NO_CHANGE`, retryable, while it runs
   */
  followUpEnd(input: FollowUpEndInput): Promise<FoundEnd>;
  /**
   * What became of a page in an earlier run of its batch; null when nobody can tell. A page that still runs is ended first.
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
  /** Local: whether somebody has reset the calling workflow. */
  wasReset(firstExecutionRunId: string): Promise<boolean>;
  /** Whether a worker has begun the send of this run, and not yet reported its end. */
  isSendUnderWay(): Promise<boolean>;
  /** One POST of the message. */
  sendMessage(input: SendInput): Promise<SendOutcome>;
}
