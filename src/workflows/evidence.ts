import type { Evidence } from '../contract/delivery';
import { isTerminal, jobState, type JobState, sameState, type TerminalStatus } from '../contract/job';

/**
 * What the answers since the send have shown. The service gives a turn no id, and two `completed` answers before and
 * after a follow-up can be equal to the byte; so a terminal status is believed by what was seen around it.
 */
export interface Sightings {
  /** The job as it was before the send. */
  readonly baseline: JobState;
  /** A status that is not terminal was answered since the send. */
  readonly seenActive: boolean;
  /** The terminal status that every readable answer gives at present; null after one that is not terminal. */
  readonly streak: Streak | null;
}

export interface Streak {
  readonly status: TerminalStatus;
  /** When the first answer of the streak was heard, in milliseconds since the epoch. */
  readonly since: number;
  readonly answers: number;
  readonly last: JobState;
  /** Answers in a row, the last one included, that equal the last one in all three fields. */
  readonly equalAnswers: number;
}

/** An answer about the job with the moments between which it was made, in milliseconds since the epoch. */
export interface HeardJob {
  readonly job: JobState;
  readonly askedAt: number;
  readonly heardAt: number;
}

export type Belief =
  /** The terminal status is that of the turn which the message began. */
  | { readonly kind: 'believed'; readonly evidence: Evidence }
  /** A terminal status that must hold for another `holdMs`, or be answered once more. */
  | { readonly kind: 'doubted'; readonly holdMs: number }
  | { readonly kind: 'not-terminal' };

export function noSightings(baseline: JobState): Sightings {
  return { baseline: jobState(baseline), seenActive: false, streak: null };
}

/** @param times how many equal answers in a row it stands for; the times are those of the last one */
export function afterAnswer(sightings: Sightings, heard: HeardJob, times = 1): Sightings {
  const { job } = heard;
  if (!isTerminal(job.status)) return { ...sightings, seenActive: true, streak: null };
  const last = jobState(job);
  const streak = sightings.streak?.status === job.status ? sightings.streak : null;
  if (streak === null) {
    const first = { status: job.status, since: heard.heardAt, answers: times, last, equalAnswers: times };
    return { ...sightings, streak: first };
  }
  const equalAnswers = (sameState(streak.last, last) ? streak.equalAnswers : 0) + times;
  return { ...sightings, streak: { ...streak, answers: streak.answers + times, last, equalAnswers } };
}

/**
 * Whether the terminal status at hand is believed.
 *
 * How long a status has held is measured from when its first answer was heard to when the latest one was asked for:
 * the true span is never shorter, whatever delays lie between service, worker and workflow.
 *
 * @param askedAt when the latest answer was asked for
 */
export function belief(sightings: Sightings, askedAt: number, confirmMs: number): Belief {
  const { baseline, streak } = sightings;
  if (streak === null) return { kind: 'not-terminal' };
  if (isTerminal(baseline.status)) {
    if (sightings.seenActive && (!sameState(streak.last, baseline) || streak.equalAnswers > 1)) {
      return { kind: 'believed', evidence: 'seen-active' };
    }
    // An equal answer after an active one may come from a stale replica: it takes one more.
    if (sightings.seenActive) return { kind: 'doubted', holdMs: 0 };
    // Nothing but a turn ends as `completed` or `failed`; `archived` may be somebody's tidying up.
    if (streak.status !== baseline.status && streak.status !== 'archived') {
      return { kind: 'believed', evidence: 'status-changed' };
    }
  }
  const heldMs = askedAt - streak.since;
  if (streak.answers < 2 || heldMs < confirmMs) {
    return { kind: 'doubted', holdMs: Math.max(0, confirmMs - Math.max(0, heldMs)) };
  }
  const changed = streak.last.prLink !== baseline.prLink || streak.last.archivedAt !== baseline.archivedAt;
  return { kind: 'believed', evidence: changed ? 'job-changed' : 'confirmed' };
}

/**
 * Whether the answers prove that a message of which nobody knows has arrived: a job that was at rest before the send
 * has moved. Where the job was already moving, reading can't tell (docs/guarantees.md).
 */
export function provesDelivery({ baseline, seenActive, streak }: Sightings): boolean {
  if (!isTerminal(baseline.status)) return false;
  return seenActive || (streak !== null && streak.status !== baseline.status && streak.status !== 'archived');
}
