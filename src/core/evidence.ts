import { isTerminal, jobState, type JobState, sameState, type TerminalStatus } from './job';
import type { WhenActive } from './request';
import type { Evidence } from './result';

/**
 * What the answers since the send have shown. The service gives a turn no id, and the `completed` answers before and after
 * a follow-up can be identical. So a terminal status is believed by what was seen around it.
 */
export interface Observations {
  /** The job as it was before the send; null if the worker that read it could not report it. */
  readonly baseline: JobState | null;
  /** The source of a status since the send that was not terminal. A read counts for more than the POST's own answer. */
  readonly seenActive: AnswerSource | null;
  /** The terminal status that every recent answer gave; null after an answer that was not terminal. */
  readonly streak: Streak | null;
}

/**
 * `response`: the POST's own answer, which is the writer's view, while reads may come from replicas behind it.
 * `read`: a GET that began after the POST.
 */
export type AnswerSource = 'response' | 'read';

interface Streak {
  readonly status: TerminalStatus;
  /** When the first answer of the streak was received, in milliseconds since the epoch. */
  readonly since: number;
  readonly answers: number;
  readonly last: JobState;
  /** Reads in a row, the last one included, that equal the last answer in all three fields. */
  readonly equalReads: number;
}

/** An answer about the job with the times of its request and its receipt, in milliseconds since the epoch. */
interface TimedJob {
  readonly job: JobState;
  readonly askedAt: number;
  readonly receivedAt: number;
}

export type Belief =
  /** The terminal status belongs to the turn that the message began. */
  | { readonly kind: 'believed'; readonly evidence: Evidence }
  /** A terminal status that must hold for another `holdMs`; 0 means that one more equal read is enough. */
  | { readonly kind: 'doubted'; readonly holdMs: number }
  | { readonly kind: 'not-terminal' };

export function noObservations(baseline: JobState | null): Observations {
  return { baseline: baseline === null ? null : jobState(baseline), seenActive: null, streak: null };
}

/** @param times how many equal answers in a row it stands for; the times are those of the last one */
export function afterAnswer(
  observations: Observations,
  answer: TimedJob,
  source: AnswerSource = 'read',
  times = 1,
): Observations {
  const { job } = answer;
  if (!isTerminal(job.status)) {
    const seenActive = observations.seenActive === 'read' ? 'read' : source;
    return { ...observations, seenActive, streak: null };
  }
  const last = jobState(job);
  const reads = source === 'read' ? times : 0;
  const streak = observations.streak?.status === job.status ? observations.streak : null;
  if (streak === null) {
    const first = { status: job.status, since: answer.receivedAt, answers: times, last, equalReads: reads };
    return { ...observations, streak: first };
  }
  const equalReads = (sameState(streak.last, last) ? streak.equalReads : 0) + reads;
  return { ...observations, streak: { ...streak, answers: streak.answers + times, last, equalReads } };
}

/**
 * Whether the terminal status at hand is believed.
 *
 * How long a status has held is measured from when its first answer was received to when the latest one was asked for:
 * the true span is never shorter, whatever delays lie between service, worker and workflow.
 *
 * @param askedAt when the latest answer was asked for
 */
export function belief(observations: Observations, askedAt: number, confirmMs: number): Belief {
  const { baseline, seenActive, streak } = observations;
  if (streak === null) return { kind: 'not-terminal' };
  let oneMoreRead = false;
  if (baseline !== null && isTerminal(baseline.status)) {
    const differs = !sameState(streak.last, baseline);
    if (seenActive !== null && differs) return { kind: 'believed', evidence: 'seen-active' };
    if (seenActive === 'read') {
      // An equal answer after an active one may come from a stale replica: it takes one more.
      if (streak.equalReads > 1) return { kind: 'believed', evidence: 'seen-active' };
      oneMoreRead = true;
    } else if (streak.status !== baseline.status && streak.status !== 'archived') {
      // Only a turn ends as `completed` or `failed`; somebody may have set `archived` by hand.
      if (streak.equalReads > 1) return { kind: 'believed', evidence: 'status-changed' };
      oneMoreRead = true;
    }
  }
  const heldMs = Math.max(0, askedAt - streak.since);
  if (streak.answers > 1 && heldMs >= confirmMs) {
    const changed =
      baseline !== null &&
      (streak.last.prLink !== baseline.prLink || streak.last.archivedAt !== baseline.archivedAt);
    return { kind: 'believed', evidence: changed ? 'job-changed' : 'confirmed' };
  }
  return { kind: 'doubted', holdMs: oneMoreRead ? 0 : Math.max(0, confirmMs - heldMs) };
}

/** Whether a message of unknown delivery has arrived, by the answers since its POST. */
export function provesDelivery({ baseline, seenActive, streak }: Observations): boolean {
  if (baseline === null || !isTerminal(baseline.status)) return false;
  return seenActive !== null || (streak !== null && showsTurn(baseline, streak.last));
}

/**
 * Whether an answer proves that a turn has begun since the baseline: a job that was terminal has changed. If the job was
 * active before, reading can't tell (docs/guarantees.md). A change to `archived` may have been made by hand.
 */
export function showsTurn(baseline: JobState | null, job: JobState): boolean {
  if (baseline === null || !isTerminal(baseline.status)) return false;
  return !isTerminal(job.status) || (job.status !== baseline.status && job.status !== 'archived');
}

/**
 * What the look at the job right before a POST decides:
 *
 * - `send`: the message may be sent.
 * - `arrived`: the job has changed since an earlier POST of unknown delivery, which proves that delivery.
 * - `wait`, `reject`: the job is active, and `whenActive` says so. An unknown status counts as active.
 */
type SendDecision = 'send' | 'arrived' | 'wait' | 'reject';

/** @param earlierBaseline the job before an earlier POST of unknown delivery; null if there was none */
export function decideSend(
  job: JobState,
  whenActive: WhenActive,
  earlierBaseline: JobState | null,
): SendDecision {
  if (showsTurn(earlierBaseline, job)) return 'arrived';
  return isTerminal(job.status) ? 'send' : whenActive;
}
