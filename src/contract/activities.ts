import type { AgentJob } from './job';

/** What the workflow must know of the worker's configuration; recorded in history, so that a replay knows it too. */
export interface WorkerSettings {
  readonly readTaskQueue: string;
  readonly sendTaskQueue: string;
  /** The limit of one HTTP exchange in milliseconds. */
  readonly httpTimeoutMs: number;
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

/** The activities as the workflow sees them. */
export interface FollowUpActivities {
  /** Local: tells the workflow the worker's settings. */
  workerSettings(): Promise<WorkerSettings>;
  /** One GET of the job. */
  getJob(address: JobAddress): Promise<JobAnswer>;
  /** Whether a worker has begun the send of this run, and not yet reported its end. */
  isSendUnderWay(): Promise<boolean>;
  /** One POST of the message. */
  sendMessage(input: SendInput): Promise<SendOutcome>;
}
