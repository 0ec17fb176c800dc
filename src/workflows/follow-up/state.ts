import type { PostOutcome, Trouble, WorkerSettings } from '../../core/activities';
import { belief, noObservations, type Observations } from '../../core/evidence';
import { type AgentJob, isTerminal, jobState, type JobState } from '../../core/job';
import { isRecord } from '../../core/json';
import type { FollowUpPlan } from '../../core/request';
import type { ConfirmedBy, Delivery, Evidence, FollowUpProgress, Phase, Receipt } from '../../core/result';
import { NO_TROUBLE } from '../../core/tally';
import { isContinuedState } from '../../core/wire-checks';

/** The plan without the message: what a watch needs, and by which nothing can be sent. */
type WatchPlan = Omit<FollowUpPlan, 'prompt'>;

/**
 * Everything that a follow-up knows. It is plain JSON, because a run that continues as new hands it to the next one.
 * Times are milliseconds since the epoch, by the workflow's clock.
 */
export interface FollowUpState {
  readonly plan: WatchPlan;
  /** Null until the worker has reported them, which is the first thing that a run asks for. */
  settings: WorkerSettings | null;
  deadlineAt: number;
  phase: Phase;
  job: AgentJob | null;
  baseline: JobState | null;
  delivery: Delivery;
  /** The one further POST that `onUnknownDelivery: resend` allows has been used up. */
  resent: boolean;
  sentAt: number | null;
  evidence: Evidence | null;
  lastAnswer: string | null;
  nextPollAt: number | null;
  /** What was read since the latest POST that may have arrived; null until there is one. */
  watch: Watch | null;
}

/** What a run that continues as new hands to the next one. It holds no message, so that nothing can be sent by it. */
export interface ContinuedFollowUp {
  readonly continued: FollowUpState;
}

export function isContinued(input: unknown): input is ContinuedFollowUp {
  return isRecord(input) && isContinuedState(input.continued);
}

/** What was read since a moment: since the POST, or while a job is waited for before it. */
export interface Watch {
  observations: Observations;
  /** When the turn, or the wait for its beginning, began: the interval grows with its age. */
  readonly since: number;
  trouble: Trouble;
  /** The job as the latest readable answer showed it. */
  last: JobState | null;
  /** The latest readable answer was like the one before. */
  steady: boolean;
  polls: number;
  observed: Readonly<Record<string, number>>;
}

/**
 * @param freshFrom from when on an answer is fresh
 * @param counted an earlier watch, whose counts go on
 */
export function newWatch(
  baseline: JobState | null,
  since: number,
  freshFrom: number,
  counted?: Watch | null,
): Watch {
  const { polls, observed } = counted ?? { polls: 0, observed: {} };
  return {
    observations: noObservations(baseline, freshFrom),
    since,
    trouble: NO_TROUBLE,
    last: null,
    steady: false,
    polls,
    observed,
  };
}

export function initialState(plan: WatchPlan, startedAt: number): FollowUpState {
  return {
    plan,
    settings: null,
    deadlineAt: startedAt + plan.deadlineMs,
    phase: 'baseline',
    job: null,
    baseline: null,
    delivery: NOT_SENT,
    resent: false,
    sentAt: null,
    evidence: null,
    lastAnswer: null,
    nextPollAt: null,
    watch: null,
  };
}

/** @param settledAt when the follow-up ended; null while it runs */
export function receiptOf(state: FollowUpState, settledAt: number | null): Receipt {
  return {
    requestId: state.plan.requestId,
    delivery: state.delivery,
    evidence: state.evidence,
    baseline: state.baseline === null ? null : jobState(state.baseline),
    polls: state.watch?.polls ?? 0,
    sentAt: isoTime(state.sentAt),
    settledAt: isoTime(settledAt),
    observed: state.watch?.observed ?? {},
  };
}

export function progressOf(state: FollowUpState): FollowUpProgress {
  const { phase, job, delivery, evidence } = state;
  const lastAnswer = lastAnswerOf(state);
  const { polls, observed } = receiptOf(state, null);
  const times = {
    nextPollAt: isoTime(state.nextPollAt),
    deadlineAt: new Date(state.deadlineAt).toISOString(),
  };
  return { phase, job, delivery, evidence, observed, polls, ...times, lastAnswer };
}

/** The last answer in words; where a terminal status is not believed yet, with the reason. */
export function lastAnswerOf({ lastAnswer, evidence, watch, plan }: FollowUpState): string | null {
  const isDoubted = watch?.last && watch.trouble.last === null && isTerminal(watch.last.status);
  if (lastAnswer === null || evidence !== null || !isDoubted) return lastAnswer;
  const { fresh, freshFrom } = watch.observations;
  const held = belief(watch.observations, plan.confirmMs);
  if (fresh === null) return `${lastAnswer}; an answer counts from ${isoSecond(freshFrom)} on`;
  return held.kind === 'doubted' ? `${lastAnswer}; must hold until ${isoSecond(held.until)}` : lastAnswer;
}

/** A moment in milliseconds since the epoch, as `2026-01-31T12:00:00Z`; the second that is over then. */
export function isoSecond(at: number): string {
  return new Date(Math.ceil(at / 1_000) * 1_000).toISOString().replace('.000Z', 'Z');
}

function isoTime(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

/** What nobody has sent yet. */
export const NOT_SENT: Delivery = { verdict: 'not-sent', confirmedBy: null, sends: 0 };

/**
 * The receipt's view of the delivery after one more POST ended with `outcome`.
 *
 * `sends` counts the POSTs that were not provably kept from the service. A message that may have arrived once stays
 * so: a later POST that was certainly not sent takes nothing back.
 */
export function afterPost(before: Delivery, outcome: PostOutcome): Delivery {
  const sends = before.sends + (reachedService(outcome) ? 1 : 0);
  if (outcome.verdict === 'accepted') return { verdict: 'accepted', confirmedBy: 'response', sends };
  const verdict = before.verdict === 'unknown' ? 'unknown' : outcome.verdict;
  return { verdict, confirmedBy: null, sends };
}

/** The delivery with one more POST, which the run before a reset may have made. */
export function withPresumed({ sends }: Delivery): Delivery {
  return { verdict: 'unknown', confirmedBy: null, sends: sends + 1 };
}

/** The delivery without that POST, because history has what the run before did. */
export function withoutPresumed(before: Delivery): Delivery {
  return before.sends > 1 ? { ...before, sends: before.sends - 1 } : NOT_SENT;
}

/** The delivery once somebody other than the POST's answer says that the message arrived. */
export function confirmed(before: Delivery, confirmedBy: Exclude<ConfirmedBy, 'response'>): Delivery {
  return { ...before, verdict: 'accepted', confirmedBy };
}

function reachedService(outcome: PostOutcome): boolean {
  return outcome.verdict !== 'not-sent' || outcome.answered;
}
