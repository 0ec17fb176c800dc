import { type Checked, objectOf, orNull, text } from './checks';

/** An agent job as the service reports it; null where it gave nothing. Times are ISO 8601 in UTC. */
export const jobFields = {
  id: text,
  /** `active`, one of {@link TERMINAL_STATUSES}, or a word that the service added later. At most 64 characters. */
  status: text,
  source: objectOf({ repository: orNull(text), ref: orNull(text) }),
  model: orNull(text),
  /** No sign of completion: it survives turns, and may be filled after `completed`. */
  prLink: orNull(text),
  createdAt: orNull(text),
  archivedAt: orNull(text),
};
export const isAgentJob = objectOf(jobFields);
export type AgentJob = Checked<typeof isAgentJob>;

/** The only status that shows a turn. */
export const ACTIVE_STATUS = 'active';

/** Any other word is not terminal (specification, "Polling rule"). */
export const TERMINAL_STATUSES = ['completed', 'archived', 'failed'] as const;
export type TerminalStatus = (typeof TERMINAL_STATUSES)[number];

export function isTerminal(status: string): status is TerminalStatus {
  return TERMINAL_STATUSES.some((each) => each === status);
}

/** Anybody may archive a job, only a turn ends otherwise. */
export function isTurnEndStatus(status: string): boolean {
  return isTerminal(status) && status !== 'archived';
}

/** What distinguishes two answers about a job. */
export const isJobState = objectOf({ status: text, prLink: orNull(text), archivedAt: orNull(text) });
export type JobState = Checked<typeof isJobState>;

export function isSameState(one: JobState, other: JobState): boolean {
  return one.status === other.status && one.prLink === other.prLink && one.archivedAt === other.archivedAt;
}

export function toJobState(job: JobState): JobState {
  return { status: job.status, prLink: job.prLink, archivedAt: job.archivedAt };
}
