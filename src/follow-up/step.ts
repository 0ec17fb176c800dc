import type { JobLockHolder, RequestFailure } from '../core/activities';
import { type AgentJob, type JobState } from '../core/job';
import type { Evidence, FailureType, Phase } from '../core/result';
import { nextWait, type Random } from './cadence';
import { isUnauthorized } from './failures';
import type { SendPermit } from './permits';
import type { FollowUpState } from './state';

/** How a follow-up ends. */
export type FollowUpOutcome =
  | { readonly kind: 'result'; readonly job: AgentJob; readonly evidence: Evidence }
  | {
      readonly kind: 'failure';
      readonly type: FailureType;
      /** One sentence; what is known about the delivery is added to it. */
      readonly reason: string;
      /** The response that decided, if one did. */
      readonly cause: RequestFailure | null;
    }
  | { readonly kind: 'cancelled' };

/** The next thing that a follow-up does. Before `at`, it waits: on a durable timer, or in the retry delay of `pollJob`. */
export type Step =
  /** Waits until the other follow-up that holds the job lock has ended. */
  | {
      readonly do: 'wait for job lock';
      readonly phase: Phase;
      readonly holder: JobLockHolder;
    }
  /** Reads the job and makes at most one POST, with one activity. */
  | {
      readonly do: 'send';
      readonly phase: Phase;
      readonly at: number;
      readonly permit: SendPermit;
      /** See `SendInput`. */
      readonly earlierBaseline: JobState | null;
    }
  /** Reads the job once. */
  | { readonly do: 'read'; readonly phase: Phase; readonly at: number }
  /** Reads the job with one activity until it differs from `known`. The read at `until` ends the activity in any case. */
  | {
      readonly do: 'poll';
      readonly phase: Phase;
      readonly at: number;
      readonly until: number;
      readonly known: JobState;
      readonly since: number;
    }
  /** Applies `onUnknownDelivery`, because no read can show any more whether the message arrived. */
  | { readonly do: 'conclude reconciling'; readonly phase: Phase }
  | { readonly do: 'end'; readonly phase: Phase; readonly outcome: FollowUpOutcome };

/** What a decision depends on, besides the state. */
export interface Moment {
  readonly now: number;
  readonly random: Random;
  /** See `nextStep`. */
  readonly minWaitMs: number;
}

export function endAs(outcome: FollowUpOutcome): Step {
  const phase = { result: 'done', failure: 'failed', cancelled: 'cancelled' } as const;
  return { do: 'end', phase: phase[outcome.kind], outcome };
}

export function endWithFailure(type: FailureType, reason: string, cause: RequestFailure | null = null): Step {
  return endAs({ kind: 'failure', type, reason, cause });
}

/** The phase of a step that sends a request: `unauthorized` while the agent service rejects the API key. */
export function requestPhase(state: FollowUpState, phase: Phase): Phase {
  return isUnauthorized(state.failures) ? 'unauthorized' : phase;
}

/** When the next request is due, apart from the times at which a read can decide something. */
export function nextRequestAt(state: FollowUpState, ageMs: number, moment: Moment): number {
  const { now, random, minWaitMs } = moment;
  if (state.readRequestedAt !== null) return now;
  const waitMs = Math.max(minWaitMs, nextWait(state.plan.polling, ageMs, state.failures, random));
  return Math.max(now, Math.min(state.lastResponseAt + waitMs, state.deadlineAt));
}

/** Reads once at `decidesAt`, when a read can decide something; after a failure not before the wait that it causes. */
export function readAt(state: FollowUpState, phase: Phase, decidesAt: number, moment: Moment): Step {
  const isDelayed = state.failures.last !== null || state.readRequestedAt !== null;
  const due = isDelayed ? nextRequestAt(state, 0, moment) : moment.now;
  const at = state.readRequestedAt === null ? Math.max(due, Math.min(decidesAt, state.deadlineAt)) : due;
  return { do: 'read', phase: requestPhase(state, phase), at };
}

/**
 * A run can't continue as new before the delivery. With `timerPolls: all`, it therefore makes only so many single reads before
 * `pollJob` takes over, which adds no events.
 */
const MAX_SINGLE_READS_BEFORE_DELIVERY = 200;

export interface PollPlan {
  readonly phase: Phase;
  readonly known: JobState | null;
  /** When the turn or the wait started. */
  readonly since: number;
  /** The reads of this kind so far. */
  readonly reads: number;
  /** When a read decides something whatever it returns: a single read, or the last one of `pollJob`. */
  readonly until: number;
}

/**
 * Reads at the next interval: the first `timerPolls` times, after a failure, and if an operator requested it, with a single read;
 * otherwise with `pollJob`.
 */
export function readOrPoll(state: FollowUpState, plan: PollPlan, moment: Moment): Step {
  const { polling } = state.plan;
  const until = Math.min(plan.until, state.deadlineAt);
  const due = nextRequestAt(state, moment.now - plan.since, moment);
  const hasFailed = state.failures.last !== null;
  const at = hasFailed ? due : Math.max(moment.now, Math.min(due, until));
  // A follow-up that needs a decision can be found by its phase, whatever its reads return.
  const phase = plan.phase === 'needs-decision' ? plan.phase : requestPhase(state, plan.phase);
  const all = state.delivery.kind === 'accepted' ? Infinity : MAX_SINGLE_READS_BEFORE_DELIVERY;
  const singleReads = polling.timerPolls === 'all' ? all : polling.timerPolls;
  const isSingle = hasFailed || state.readRequestedAt !== null || at >= until || plan.reads < singleReads;
  if (isSingle || plan.known === null) return { do: 'read', phase, at };
  return { do: 'poll', phase, at, until, known: plan.known, since: plan.since };
}
