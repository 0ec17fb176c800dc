import { isTerminal, jobState, type JobState } from './job';
import type { WhenActive } from './request';
import type { Evidence } from './result';

/**
 * What the reads since a POST have shown. The service gives a turn no id, and the `completed` answers before and after a
 * message can be identical. A read may come from a replica that lags, and a message may be taken up later than it was
 * accepted; `confirm` is assumed to be longer than both together. So one rule decides: only a fresh answer counts, one that
 * was asked for at least `confirm` after the POST ended. It shows the job after the message was taken up.
 */
export interface Observations {
  /** The job right before the POST; null if the worker that read it could not report it. */
  readonly baseline: JobState | null;
  /** An answer that was asked for at this moment or later is fresh; milliseconds since the epoch, by the workflow's clock. */
  readonly freshFrom: number;
  /** A read since the POST was not terminal, fresh or not. */
  readonly seenActive: boolean;
  /** The latest fresh answer; null before the first. */
  readonly fresh: Held | null;
}

/** A job, and for how long each fresh answer has shown its status. Times as in {@link Observations}. */
interface Held {
  readonly job: JobState;
  /** When the first of these answers was received. */
  readonly since: number;
  /** When the latest of these answers was asked for. */
  readonly askedAt: number;
  readonly answers: number;
}

/** An answer about the job: it was made after it was asked for, and before it was received. */
interface TimedJob {
  readonly job: JobState;
  readonly askedAt: number;
  readonly receivedAt: number;
}

export type Belief =
  /** The terminal status belongs to the turn that the message began. */
  | { readonly kind: 'believed'; readonly evidence: Evidence }
  /** A fresh terminal status that is believed if an answer that is asked for at `until` or later shows it too. */
  | { readonly kind: 'doubted'; readonly until: number }
  /** No fresh answer, or one that is not terminal. */
  | { readonly kind: 'open' };

/** @param freshFrom when the POST ended, and `confirm` after it */
export function noObservations(baseline: JobState | null, freshFrom: number): Observations {
  return { baseline: baseline && jobState(baseline), freshFrom, seenActive: false, fresh: null };
}

export function afterRead(observations: Observations, { job, askedAt, receivedAt }: TimedJob): Observations {
  const seenActive = observations.seenActive || !isTerminal(job.status);
  if (askedAt < observations.freshFrom) return { ...observations, seenActive };
  const before = observations.fresh?.job.status === job.status ? observations.fresh : null;
  const since = before?.since ?? receivedAt;
  const fresh = { job: jobState(job), since, askedAt, answers: (before?.answers ?? 0) + 1 };
  return { ...observations, seenActive, fresh };
}

/**
 * Whether the status of the latest fresh answer is believed to be the end of the message's turn.
 *
 * How long a status has held is measured from when its first answer was received to when the latest one was asked for: the
 * true span is never shorter, whatever delays lie between service, worker and workflow.
 */
export function belief({ baseline, seenActive, fresh }: Observations, confirmMs: number): Belief {
  if (fresh === null || !isTerminal(fresh.job.status)) return { kind: 'open' };
  const { job, since, askedAt, answers } = fresh;
  if (baseline !== null && isTerminal(baseline.status)) {
    if (seenActive) return { kind: 'believed', evidence: 'seen-active' };
    // Only a turn ends as `completed` or `failed`; anybody may archive a job.
    if (job.status !== baseline.status && job.status !== 'archived')
      return { kind: 'believed', evidence: 'status-changed' };
  }
  const until = since + confirmMs;
  if (answers < 2 || askedAt < until) return { kind: 'doubted', until };
  const changed =
    baseline !== null && (job.prLink !== baseline.prLink || job.archivedAt !== baseline.archivedAt);
  return { kind: 'believed', evidence: changed ? 'job-changed' : 'confirmed' };
}

/** Whether a fresh answer shows that a message of unknown delivery has arrived. */
export function provesDelivery({ baseline, fresh }: Observations): boolean {
  return fresh !== null && showsTurn(baseline, fresh.job);
}

/**
 * Whether a fresh answer shows a turn since the baseline. If the job was active before, reading can't tell
 * (docs/guarantees.md). Anybody may archive a job, or take it out of the archive.
 */
function showsTurn(baseline: JobState | null, job: JobState): boolean {
  if (baseline === null || !isTerminal(baseline.status)) return false;
  if (!isTerminal(job.status)) return true;
  return job.status !== baseline.status && job.status !== 'archived' && baseline.status !== 'archived';
}

/**
 * What the look at the job right before a POST decides:
 *
 * - `send`: the message may be sent.
 * - `arrived`: the job has changed since an earlier POST of unknown delivery, which proves that delivery.
 * - `wait`, `reject`: the job is active, and `whenActive` says so. An unknown status counts as active.
 */
type SendDecision = 'send' | 'arrived' | 'wait' | 'reject';

/** @param earlierBaseline the job before an earlier POST of unknown delivery for which this look is fresh; else null */
export function decideSend(
  job: JobState,
  whenActive: WhenActive,
  earlierBaseline: JobState | null,
): SendDecision {
  if (showsTurn(earlierBaseline, job)) return 'arrived';
  return isTerminal(job.status) ? 'send' : whenActive;
}
