/**
 * An agent job as the service reports it. Only `id` and `status` are certain; every other field is null where
 * the service gave none (source: the service's specification, "Resources and their fields").
 */
export interface AgentJob {
  readonly id: string;
  /** `active`, one of {@link TERMINAL_STATUSES}, or a word that the service added later. At most 64 characters. */
  readonly status: string;
  readonly source: AgentJobSource;
  readonly model: string | null;
  /** The pull request's URL. It does not show completion: it survives turns and may be filled after `completed`. */
  readonly prLink: string | null;
  /** ISO 8601, UTC. */
  readonly createdAt: string | null;
  /** ISO 8601, UTC. */
  readonly archivedAt: string | null;
}

interface AgentJobSource {
  readonly repository: string | null;
  readonly ref: string | null;
}

/** The statuses that end polling (source: the specification, "Polling rule"). Any other word means "not terminal". */
const TERMINAL_STATUSES = ['completed', 'archived', 'failed'] as const;

export type TerminalStatus = (typeof TERMINAL_STATUSES)[number];

export function isTerminal(status: string): status is TerminalStatus {
  return (TERMINAL_STATUSES as readonly string[]).includes(status);
}

/** The three fields of a job that distinguish two answers about it. */
export interface JobState {
  readonly status: string;
  readonly prLink: string | null;
  readonly archivedAt: string | null;
}

export function sameState(one: JobState, other: JobState): boolean {
  return one.status === other.status && one.prLink === other.prLink && one.archivedAt === other.archivedAt;
}

export function jobState(job: JobState): JobState {
  return { status: job.status, prLink: job.prLink, archivedAt: job.archivedAt };
}
