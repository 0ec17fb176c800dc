import { type Checked, fields, orNull, text } from './checks';

/** An agent job as the service reports it; null where it gave nothing (its specification, "Resources and their fields"). */
export const jobFields = {
  id: text,
  /** `active`, one of {@link TERMINAL_STATUSES}, or a word that the service added later. At most 64 characters. */
  status: text,
  source: fields({ repository: orNull(text), ref: orNull(text) }),
  model: orNull(text),
  /** No sign of completion: it survives turns, and may be filled after `completed`. */
  prLink: orNull(text),
  /** ISO 8601, UTC. */
  createdAt: orNull(text),
  /** ISO 8601, UTC. */
  archivedAt: orNull(text),
};
export const isAgentJob = fields(jobFields);
export type AgentJob = Checked<typeof isAgentJob>;

interface TerminalMeaning {
  /** Counts against the tolerance of a batch. */
  readonly isFailure: boolean;
  /** Only a turn ends so; anybody may archive a job. */
  readonly endsTurn: boolean;
  /** The service may fill `prLink` after it (specification: "populated once the agent has created a pull request"). */
  readonly awaitsLink: boolean;
}

/** The only status that shows a turn. */
export const ACTIVE = 'active';

/** Any other word is not terminal (specification, "Polling rule"). */
const TERMINAL = {
  completed: { isFailure: false, endsTurn: true, awaitsLink: true },
  archived: { isFailure: false, endsTurn: false, awaitsLink: false },
  failed: { isFailure: true, endsTurn: true, awaitsLink: false },
} as const satisfies Readonly<Record<string, TerminalMeaning>>;

export type TerminalStatus = keyof typeof TERMINAL;
export const TERMINAL_STATUSES = Object.keys(TERMINAL) as readonly TerminalStatus[];

export function isTerminal(status: string): status is TerminalStatus {
  return Object.hasOwn(TERMINAL, status);
}

export function terminalMeaning(status: string): TerminalMeaning | undefined {
  return isTerminal(status) ? TERMINAL[status] : undefined;
}

/** What distinguishes two answers about a job. */
export const isJobState = fields({ status: text, prLink: orNull(text), archivedAt: orNull(text) });
export type JobState = Checked<typeof isJobState>;

export function sameState(one: JobState, other: JobState): boolean {
  return one.status === other.status && one.prLink === other.prLink && one.archivedAt === other.archivedAt;
}

export function jobState(job: JobState): JobState {
  return { status: job.status, prLink: job.prLink, archivedAt: job.archivedAt };
}
