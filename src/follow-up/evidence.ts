import { boolean, type Checked, objectOf, orNull, time } from '../contract/checks';
import {
  ACTIVE_STATUS,
  type AgentJob,
  isTurnEndStatus,
  isAgentJob,
  isJobState,
  isTerminal,
  toJobState,
  type JobState,
} from '../contract/job';
import type { WhenActive } from '../contract/request';
import type { Evidence } from '../contract/result';

/**
 * What the reads since a POST have shown. A replica may be behind, and the agent may start late: `maxStaleness` is assumed to be
 * longer than both delays together. Only a fresh response decides, whose read was requested at least `maxStaleness` after the
 * POST ended.
 */
export const isObservations = objectOf({
  /** The job right before the POST; null if the worker that read it could not report it. */
  baseline: orNull(isJobState),
  /** The time from which on a requested read is fresh. */
  freshFrom: time,
  /** Whether any read since the POST returned `active`. */
  hasSeenActive: boolean,
  /** The latest readable response, fresh or not; null before the first one. */
  last: orNull(isJobState),
  /**
   * The fresh responses in a row that have the same status, up to the latest one: its job, when the first one was received, and
   * when the latest one was requested.
   */
  freshStreak: orNull(objectOf({ job: isAgentJob, since: time, requestedAt: time })),
});
export type Observations = Checked<typeof isObservations>;

/** The job in the POST's own response is not observed: only reads are evidence. */
export function createObservations(baseline: JobState | null, freshFrom: number): Observations {
  return {
    baseline: baseline && toJobState(baseline),
    freshFrom,
    hasSeenActive: false,
    last: null,
    freshStreak: null,
  };
}

export function addObservation(
  observations: Observations,
  job: AgentJob,
  requestedAt: number,
  receivedAt: number,
): Observations {
  const hasSeenActive = observations.hasSeenActive || job.status === ACTIVE_STATUS;
  const seen = { ...observations, hasSeenActive, last: toJobState(job) };
  if (requestedAt < observations.freshFrom) return seen;
  const isSame = observations.freshStreak?.job.status === job.status;
  const since = isSame ? observations.freshStreak.since : receivedAt;
  return { ...seen, freshStreak: { job, since, requestedAt } };
}

/**
 * `accepted`: the latest fresh response shows the end of the message's turn. `held`: the status is accepted if a response that is
 * requested at `until` or later shows it too. `open`: no fresh response shows a terminal status.
 */
export type EndJudgment =
  | { readonly kind: 'accepted'; readonly evidence: Evidence; readonly job: AgentJob; readonly since: number }
  | { readonly kind: 'held'; readonly until: number }
  | { readonly kind: 'open' };

/** Applies the evidence rules 2 and 3 of the contract (docs/result.md). */
export function judgeEnd(
  { baseline, hasSeenActive, freshStreak }: Observations,
  maxStalenessMs: number,
): EndJudgment {
  if (freshStreak === null || !isTerminal(freshStreak.job.status)) return { kind: 'open' };
  const { job, since, requestedAt } = freshStreak;
  const accepted = (evidence: Evidence) => ({ kind: 'accepted', evidence, job, since }) as const;
  const wasIdle = baseline !== null && isTerminal(baseline.status);
  if (wasIdle && hasSeenActive) return accepted('seen-active');
  if (wasIdle && job.status !== baseline.status && isTurnEndStatus(job.status))
    return accepted('status-changed');
  // The true time for which the status stayed the same is never shorter than the time from the arrival of the first response to
  // the request of the latest one. A single response never qualifies, because its request comes before its arrival.
  const until = since + maxStalenessMs;
  if (requestedAt < until || requestedAt <= since) return { kind: 'held', until };
  if (baseline !== null && (job.prLink !== baseline.prLink || job.archivedAt !== baseline.archivedAt))
    return accepted('job-changed');
  return accepted(wasIdle ? 'unchanged' : 'active-before');
}

/** Whether a read before the first fresh one can show anything: only that the turn of a job that was idle has started. */
export function canShowTurn({ baseline, hasSeenActive }: Observations): boolean {
  return !hasSeenActive && baseline !== null && isTerminal(baseline.status);
}

/** Whether reading can show that a message of unknown delivery arrived: only if the job was idle before. */
export function canShowDelivery({ baseline }: Observations): boolean {
  return baseline !== null && isTerminal(baseline.status);
}

/** Whether the latest fresh response shows that a message of unknown delivery arrived (rule 6 of the contract). */
export function isDeliveryShown({ baseline, freshStreak }: Observations): boolean {
  return freshStreak !== null && isTurnShown(baseline, freshStreak.job);
}

/**
 * Whether a job shows a turn that its baseline did not have. A job that was active before shows nothing, and neither does
 * archiving, because any client can archive and restore a job.
 */
function isTurnShown(baseline: JobState | null, job: JobState): boolean {
  if (baseline === null || !isTerminal(baseline.status)) return false;
  if (!isTerminal(job.status)) return job.status === ACTIVE_STATUS;
  return job.status !== baseline.status && isTurnEndStatus(job.status) && isTurnEndStatus(baseline.status);
}

/**
 * Until when a late `prLink` of a completed job is read for; null if no read is needed. Only a response that was requested at the
 * end of that time or later shows that there is no link.
 */
export function linkWaitEndsAt({ freshStreak }: Observations, prLinkTimeoutMs: number): number | null {
  if (freshStreak?.job.prLink !== null || freshStreak.job.status !== 'completed') return null;
  const endsAt = freshStreak.since + prLinkTimeoutMs;
  return freshStreak.requestedAt >= endsAt ? null : endsAt;
}

/**
 * Decides by the baseline read whether the message may be sent.
 *
 * @param earlierBaseline the job before an earlier POST of unknown delivery, if the baseline read is fresh for that POST
 * @returns `send`, `wait` or `reject`; `arrived` if the job shows that the earlier POST arrived
 */
export function decideSend(
  job: JobState,
  whenActive: WhenActive,
  earlierBaseline: JobState | null,
): WhenActive | 'arrived' {
  if (isTurnShown(earlierBaseline, job)) return 'arrived';
  return isTerminal(job.status) ? 'send' : whenActive;
}
