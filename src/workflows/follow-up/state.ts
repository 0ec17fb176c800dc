import {
  boolean,
  type Checked,
  count,
  fields,
  mapOf,
  mutable,
  oneOf,
  orNull,
  text,
  time,
} from '../../core/checks';
import { afterRead, belief, isObservations } from '../../core/evidence';
import { digestOf } from '../../core/ids';
import { isAgentJob, isJobState, isTerminal, jobState, type JobState, sameState } from '../../core/job';
import { type FollowUpPlan, isWatchPlan } from '../../core/request';
import {
  type ConfirmedBy,
  type Delivery,
  type FollowUpProgress,
  isDelivery,
  isEvidence,
  PHASES,
  type Receipt,
} from '../../core/result';
import { NO_TROUBLE } from '../../core/tally';
import { isTrouble, isWorkerSettings } from '../../core/activities';

const isWatch = mutable(
  fields({
    observations: isObservations,
    /** When the turn, or the wait for its beginning, began: the interval grows with its age. */
    since: time,
    trouble: isTrouble,
    last: orNull(isJobState),
    steady: boolean,
    polls: count,
    observed: mapOf(count),
  }),
);
export type Watch = Checked<typeof isWatch>;

/** Everything that a follow-up knows, as plain JSON. Times are by the workflow's clock. */
const isState = mutable(
  fields({
    plan: isWatchPlan,
    promptDigest: text,
    /** Null until the worker has reported them, which is the first thing that a run asks for. */
    settings: orNull(isWorkerSettings),
    /** A reset has made this run: the one before may have sent what is not in this history. */
    isReset: boolean,
    deadlineAt: time,
    phase: oneOf(...PHASES),
    job: orNull(isAgentJob),
    baseline: orNull(isJobState),
    delivery: isDelivery,
    /** The one further POST that `onUnknownDelivery: resend` allows has been used up. */
    resent: boolean,
    sentAt: orNull(time),
    doubt: orNull(text),
    evidence: orNull(isEvidence),
    lastAnswer: orNull(text),
    nextPollAt: orNull(time),
    /** What was read since the latest POST that may have arrived; null until there is one. */
    watch: orNull(isWatch),
  }),
);
export type FollowUpState = Checked<typeof isState>;

/** For the run that continues this one. Without a message, nothing can be sent by it. */
export const isContinued = fields({ continued: isState });
export type ContinuedFollowUp = Checked<typeof isContinued>;

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
  const observations = {
    baseline: baseline && jobState(baseline),
    freshFrom,
    seenActive: false,
    fresh: null,
  };
  return { observations, since, trouble: NO_TROUBLE, last: null, steady: false, polls, observed };
}

export function record(watch: Watch, job: JobState, askedAt: number, receivedAt: number): void {
  watch.steady = watch.last !== null && sameState(watch.last, job);
  watch.last = jobState(job);
  watch.observations = afterRead(watch.observations, job, askedAt, receivedAt);
}

/** The job before a POST of unknown delivery, where a look at `askedAt` is fresh. */
export function earlierBaseline({ delivery, watch }: FollowUpState, askedAt: number): JobState | null {
  if (delivery.verdict !== 'unknown' || watch === null) return null;
  return askedAt >= watch.observations.freshFrom ? watch.observations.baseline : null;
}

export function initialState(
  { prompt, ...plan }: FollowUpPlan,
  startedAt: number,
  isReset: boolean,
): FollowUpState {
  return {
    plan,
    promptDigest: digestOf(prompt),
    settings: null,
    isReset,
    deadlineAt: startedAt + plan.deadlineMs,
    phase: 'baseline',
    job: null,
    baseline: null,
    delivery: NOT_SENT,
    resent: false,
    sentAt: null,
    doubt: null,
    evidence: null,
    lastAnswer: null,
    nextPollAt: null,
    watch: null,
  };
}

export function receiptOf(state: FollowUpState, settledAt: number | null): Receipt {
  return {
    requestId: state.plan.requestId,
    delivery: told(state),
    evidence: state.evidence,
    baseline: state.baseline,
    promptDigest: state.promptDigest,
    polls: state.watch?.polls ?? 0,
    sentAt: isoTime(state.sentAt),
    settledAt: isoTime(settledAt),
    observed: state.watch?.observed ?? {},
  };
}

export function progressOf(state: FollowUpState): FollowUpProgress {
  const { phase, job } = state;
  const { delivery, evidence, polls, observed } = receiptOf(state, null);
  const nextPollAt = isoTime(state.nextPollAt);
  const deadlineAt = new Date(state.deadlineAt).toISOString();
  const doubt = delivery.verdict === 'unknown' ? (state.doubt ?? undefined) : undefined;
  const lastAnswer = lastAnswerOf(state);
  return { phase, job, delivery, evidence, observed, polls, nextPollAt, deadlineAt, doubt, lastAnswer };
}

/** Where a terminal status is not believed yet, with the reason. */
export function lastAnswerOf({ lastAnswer, evidence, watch, plan }: FollowUpState): string | null {
  const isDoubted = watch?.last && watch.trouble.last === null && isTerminal(watch.last.status);
  if (lastAnswer === null || evidence !== null || !isDoubted) return lastAnswer;
  const { fresh, freshFrom } = watch.observations;
  const { until } = belief(watch.observations, plan.confirmMs);
  if (fresh === null) return `${lastAnswer}; an answer counts from ${isoSecond(freshFrom)} on`;
  return until === undefined ? lastAnswer : `${lastAnswer}; must hold until ${isoSecond(until)}`;
}

/** As `2026-01-31T12:00:00Z`; the second that is over then. */
export function isoSecond(at: number): string {
  return new Date(Math.ceil(at / 1_000) * 1_000).toISOString().replace('.000Z', 'Z');
}

function isoTime(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

export const NOT_SENT: Delivery = { verdict: 'not-sent', confirmedBy: null, sends: 0 };

/** A run made by a reset can't know that nothing was sent. */
export function told({ delivery, isReset }: Pick<FollowUpState, 'delivery' | 'isReset'>): Delivery {
  if (!isReset || delivery.verdict !== 'not-sent') return delivery;
  return { verdict: 'unknown', confirmedBy: null, sends: delivery.sends + 1 };
}

/** Somebody other than the POST's answer says that the message arrived. */
export function confirmed(before: Delivery, confirmedBy: Exclude<ConfirmedBy, 'response'>): Delivery {
  return { ...before, verdict: 'accepted', confirmedBy };
}
