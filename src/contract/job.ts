import { type Checked, objectOf, orNull, text } from './checks';

/**
 * An agent job as the agent service returns it. A field is null if the agent service returned no value. Times are ISO 8601 in
 * UTC.
 */
export const jobFields = {
  id: text,
  /**
   * `active`, one of {@link TERMINAL_STATUSES}, or a status that the agent service added later. The status has at most 64
   * characters.
   */
  status: text,
  source: objectOf({ repository: orNull(text), ref: orNull(text) }),
  model: orNull(text),
  /** The link is not a sign of completion, because the link survives turns and may be set after `completed`. */
  prLink: orNull(text),
  createdAt: orNull(text),
  archivedAt: orNull(text),
};
export const isAgentJob = objectOf(jobFields);
export type AgentJob = Checked<typeof isAgentJob>;

/** The only status that shows a running turn. */
export const ACTIVE_STATUS = 'active';

/** Every other status is not terminal (docs/agent-service.md). */
export const TERMINAL_STATUSES = ['completed', 'archived', 'failed'] as const;
export type TerminalStatus = (typeof TERMINAL_STATUSES)[number];

export function isTerminal(status: string): status is TerminalStatus {
  return TERMINAL_STATUSES.some((each) => each === status);
}

/** Returns whether this version knows a status. The agent service may add statuses, and such a status is not terminal. */
export function isKnownStatus(status: string): boolean {
  return status === ACTIVE_STATUS || isTerminal(status);
}

/** Returns whether only the end of a turn sets this status. Any client can archive a job, so `archived` is excluded. */
export function isTurnEndStatus(status: string): boolean {
  return isTerminal(status) && status !== 'archived';
}

/** The fields in which two responses about a job can differ. */
export const isJobState = objectOf({ status: text, prLink: orNull(text), archivedAt: orNull(text) });
export type JobState = Checked<typeof isJobState>;

export function isSameState(one: JobState, other: JobState): boolean {
  return one.status === other.status && one.prLink === other.prLink && one.archivedAt === other.archivedAt;
}

export function toJobState(job: JobState): JobState {
  return { status: job.status, prLink: job.prLink, archivedAt: job.archivedAt };
}
