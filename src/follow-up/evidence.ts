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
 * The facts that the reads since a POST have shown. A replica may lag, and the agent may start on a message late. `maxStaleness`
 * is assumed to be longer than both delays together. A response is fresh if its read was requested at least `maxStaleness` after
 * the POST ended. Only fresh responses can end a follow-up with a job. An earlier `active` can also show that the turn has
 * started.
 */
export const isObservations = objectOf({
  /** The job right before the POST. The value is null if the worker that read the job could not report it. */
  baseline: orNull(isJobState),
  /** The time from which on a requested read is fresh. */
  freshFrom: time,
  /** Whether any read since the POST returned `active`. */
  hasSeenActive: boolean,
  /** The job in the latest readable response, fresh or not. The value is null before the first readable response. */
  last: orNull(isJobState),
  /**
   * The latest fresh responses in a row that have the same status. `job` is the job in the latest response. `since` is the time
   * at which the first response was received. `requestedAt` is the time at which the latest read was requested.
   */
  freshStreak: orNull(objectOf({ job: isAgentJob, since: time, requestedAt: time })),
});
export type Observations = Checked<typeof isObservations>;

/** Creates the observations after a POST. The job in the POST's own response is not included, because only reads are evidence. */
export function createObservations(baseline: JobState | null, freshFrom: number): Observations {
  return {
    baseline: baseline && toJobState(baseline),
    freshFrom,
    hasSeenActive: false,
    last: null,
    freshStreak: null,
  };
}

/** Adds one readable response to the observations. */
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

/** Returns whether the job was idle right before the POST. The value is false if the baseline is not known. */
function wasIdle(baseline: JobState | null): baseline is JobState {
  return baseline !== null && isTerminal(baseline.status);
}

/**
 * Whether the latest fresh response is accepted as the end of the message's turn.
 *
 * - `accepted`: the response is accepted, and `evidence` has the reason.
 * - `held`: the status is accepted if a read that is requested at `until` or later returns the same status.
 * - `open`: no fresh response was received, or the latest fresh response has no terminal status.
 */
export type EndJudgment =
  | { readonly kind: 'accepted'; readonly evidence: Evidence; readonly job: AgentJob; readonly since: number }
  | { readonly kind: 'held'; readonly until: number }
  | { readonly kind: 'open' };

/** Judges the latest fresh response by the rules in docs/result.md#evidence. */
export function judgeEnd(
  { baseline, hasSeenActive, freshStreak }: Observations,
  maxStalenessMs: number,
): EndJudgment {
  if (freshStreak === null || !isTerminal(freshStreak.job.status)) return { kind: 'open' };
  const { job, since, requestedAt } = freshStreak;
  const accepted = (evidence: Evidence) => ({ kind: 'accepted', evidence, job, since }) as const;
  if (wasIdle(baseline) && hasSeenActive) return accepted('seen-active');
  if (wasIdle(baseline) && job.status !== baseline.status && isTurnEndStatus(job.status))
    return accepted('status-changed');
  // The status counts as unchanged from the arrival of the first response to the request of the latest read, because it may have
  // changed right before or after. A single response never qualifies, because its request comes before its arrival.
  const until = since + maxStalenessMs;
  if (requestedAt < until || requestedAt <= since) return { kind: 'held', until };
  if (baseline !== null && (job.prLink !== baseline.prLink || job.archivedAt !== baseline.archivedAt))
    return accepted('job-changed');
  return accepted(wasIdle(baseline) ? 'unchanged' : 'active-before');
}

/**
 * Returns whether a read that is not fresh can show anything. Such a read can only show that the turn has started, and only if
 * the job was idle before the POST.
 */
export function canShowTurn({ baseline, hasSeenActive }: Observations): boolean {
  return !hasSeenActive && wasIdle(baseline);
}

/**
 * Returns whether reads can show that a message of unknown delivery arrived. Reads can show this only if the job was idle before.
 */
export function canShowDelivery({ baseline }: Observations): boolean {
  return wasIdle(baseline);
}

/**
 * Returns whether the latest fresh response shows that a message of unknown delivery arrived
 * (docs/result.md#evidence-for-an-unknown-delivery).
 */
export function isDeliveryShown({ baseline, freshStreak }: Observations): boolean {
  return freshStreak !== null && isTurnShown(baseline, freshStreak.job);
}

/**
 * Returns whether a job shows a turn that its baseline did not have. If the job was not idle before, the job shows nothing. A
 * change from or to `archived` shows nothing either, because any client can archive and restore a job.
 */
function isTurnShown(baseline: JobState | null, job: JobState): boolean {
  if (!wasIdle(baseline)) return false;
  if (!isTerminal(job.status)) return job.status === ACTIVE_STATUS;
  return job.status !== baseline.status && isTurnEndStatus(job.status) && isTurnEndStatus(baseline.status);
}

/**
 * Returns the time until which the job is read for a late `prLink`; null if no read is needed. Only a read that is requested at
 * that time or later can show that the completed job has no link.
 */
export function linkWaitEndsAt({ freshStreak }: Observations, prLinkTimeoutMs: number): number | null {
  if (freshStreak?.job.prLink !== null || freshStreak.job.status !== 'completed') return null;
  const endsAt = freshStreak.since + prLinkTimeoutMs;
  return freshStreak.requestedAt >= endsAt ? null : endsAt;
}

/**
 * Decides from the baseline read whether the message may be sent.
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
