import { boolean, type Checked, count, fields, orNull, time } from './checks';
import { ACTIVE, endsTurn, isJobState, isTerminal, jobState, type JobState } from './job';
import type { WhenActive } from './request';
import type { Evidence } from './result';

/**
 * What the reads since a POST have shown. A read may come from a replica that lags, and a message may be taken up later than it
 * was accepted: `confirm` is assumed to be longer than both together. So only a fresh answer counts, which was asked for at
 * least `confirm` after the POST ended.
 */
export const isObservations = fields({
  /** Null if the worker that read it could not report it. */
  baseline: orNull(isJobState),
  /** By the workflow's clock. */
  freshFrom: time,
  /** By any read since the POST. */
  seenActive: boolean,
  /** The fresh answers that show the same status up to the latest: since when they were received, the latest asked for. */
  fresh: orNull(fields({ job: isJobState, since: time, askedAt: time, answers: count })),
});
export type Observations = Checked<typeof isObservations>;

interface Belief {
  /** Null where no terminal status is believed. */
  readonly evidence: Evidence | null;
  /** The one that was shown is believed if an answer that is asked for then or later shows it too. */
  readonly until?: number;
}

export function afterRead(
  observations: Observations,
  job: JobState,
  askedAt: number,
  receivedAt: number,
): Observations {
  const seenActive = observations.seenActive || job.status === ACTIVE;
  if (askedAt < observations.freshFrom) return { ...observations, seenActive };
  const before = observations.fresh?.job.status === job.status ? observations.fresh : null;
  const since = before?.since ?? receivedAt;
  const fresh = { job: jobState(job), since, askedAt, answers: (before?.answers ?? 0) + 1 };
  return { ...observations, seenActive, fresh };
}

/**
 * Whether the latest fresh answer shows the end of the message's turn. A status has held from when its first answer was received
 * to when the latest one was asked for: the true span is never shorter.
 */
export function belief({ baseline, seenActive, fresh }: Observations, confirmMs: number): Belief {
  if (fresh === null || !isTerminal(fresh.job.status)) return { evidence: null };
  const { job, since, askedAt, answers } = fresh;
  if (baseline !== null && isTerminal(baseline.status)) {
    if (seenActive) return { evidence: 'seen-active' };
    if (job.status !== baseline.status && endsTurn(job.status)) return { evidence: 'status-changed' };
  }
  const until = since + confirmMs;
  if (answers < 2 || askedAt < until) return { evidence: null, until };
  const changed =
    baseline !== null && (job.prLink !== baseline.prLink || job.archivedAt !== baseline.archivedAt);
  return { evidence: changed ? 'job-changed' : 'confirmed' };
}

/** Until when no read can decide anything: before an answer is fresh, one can only show a turn of a job that was at rest. */
export function idleUntil({ baseline, freshFrom, seenActive, fresh }: Observations): number {
  if (fresh !== null) return 0;
  const mayShowTurn = !seenActive && baseline !== null && isTerminal(baseline.status);
  return mayShowTurn ? 0 : freshFrom;
}

/** Whether a fresh answer shows that a message of unknown delivery has arrived. */
export function provesDelivery({ baseline, fresh }: Observations): boolean {
  return fresh !== null && showsTurn(baseline, fresh.job);
}

/** Not if the job was active before, or by archiving, which anybody may do and undo. */
function showsTurn(baseline: JobState | null, job: JobState): boolean {
  if (baseline === null || !isTerminal(baseline.status)) return false;
  if (!isTerminal(job.status)) return job.status === ACTIVE;
  return job.status !== baseline.status && endsTurn(job.status) && endsTurn(baseline.status);
}

/** What the look decides: `arrived` if it proves an earlier POST, by the job before that, given where the look is fresh. */
export function decideSend(
  job: JobState,
  whenActive: WhenActive,
  earlierBaseline: JobState | null,
): WhenActive | 'arrived' {
  if (showsTurn(earlierBaseline, job)) return 'arrived';
  return isTerminal(job.status) ? 'send' : whenActive;
}
