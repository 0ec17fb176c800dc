import type { JobLockHolder, RequestFailure } from '../contract/activities';
import { type AgentJob, type JobState } from '../contract/job';
import type { Evidence, FailureType, Phase } from '../contract/result';
import { nextWait, type Random } from './cadence';
import { isUnauthorized } from './failures';
import type { SendPermit } from './permits';
import { type FollowUpState, readsOf } from './state';

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
export type Step = { readonly phase: Phase } &
  /** Waits until the other follow-up that holds the job lock has ended. */
  (
    | { readonly do: 'wait for job lock'; readonly holder: JobLockHolder }
    /** Reads the job and makes at most one POST, with one activity. @see SendInput for `earlierBaseline` */
    | {
        readonly do: 'send';
        readonly at: number;
        readonly permit: SendPermit;
        readonly earlierBaseline: JobState | null;
      }
    /** Reads the job once. */
    | { readonly do: 'read'; readonly at: number }
    /** Reads the job with one activity until it differs from `known`. The read at `until` ends the activity in any case. */
    | {
        readonly do: 'poll';
        readonly at: number;
        readonly until: number;
        readonly known: JobState;
        readonly since: number;
      }
    /** Applies `onUnknownDelivery`, because no read can show any more whether the message arrived. */
    | { readonly do: 'conclude reconciling' }
    | { readonly do: 'end'; readonly outcome: FollowUpOutcome }
  );

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
export function requestPhase({ failures }: FollowUpState, phase: Phase): Phase {
  // A follow-up that needs a decision can be found by its phase, whatever its reads return.
  return phase !== 'needs-decision' && isUnauthorized(failures) ? 'unauthorized' : phase;
}

/** When the next request is due by the poll interval, or after the wait that a failure causes. */
function nextRequestAt(state: FollowUpState, ageMs: number, moment: Moment): number {
  const { now, random, minWaitMs } = moment;
  if (state.readRequestedAt !== null) return now;
  const waitMs = Math.max(minWaitMs, nextWait(state.plan.polling, ageMs, state.failures, random));
  return Math.max(now, Math.min(state.lastResponseAt + waitMs, state.deadlineAt));
}

/** The earliest time for a request that needs no poll interval: now, but after a failure not before the wait that it causes. */
export function earliestRequestAt(state: FollowUpState, moment: Moment): number {
  const isDelayed = state.failures.last !== null || moment.minWaitMs > 0;
  return isDelayed ? nextRequestAt(state, 0, moment) : moment.now;
}

/** Reads once at `decidesAt`, when a read can decide something. */
export function readAt(state: FollowUpState, phase: Phase, decidesAt: number, moment: Moment): Step {
  const earliest = earliestRequestAt(state, moment);
  const isRequested = state.readRequestedAt !== null;
  const at = isRequested ? earliest : Math.max(earliest, Math.min(decidesAt, state.deadlineAt));
  return { do: 'read', phase: requestPhase(state, phase), at };
}

/**
 * A run can't continue as new before the delivery. With `timerPolls: all`, it therefore makes only so many single reads before
 * `pollJob` takes over, which adds no events.
 */
const MAX_SINGLE_READS_BEFORE_DELIVERY = 200;

/**
 * Reads at the next interval: the first `timerPolls` times, after a failure, and if an operator requested it, with a single read;
 * otherwise with `pollJob`.
 *
 * @param until when a read decides something whatever it returns: a single read, or the last one of `pollJob`
 * @param since the poll interval grows with the time since then @default the start of the turn, or of the wait for an idle job
 */
export function readOrPoll(
  state: FollowUpState,
  phase: Phase,
  until: number,
  moment: Moment,
  since = startOfPolling(state),
): Step {
  const { plan, failures, waitingForJob, deadlineAt, polls } = state;
  const { timerPolls } = plan.polling;
  const due = nextRequestAt(state, moment.now - since, moment);
  const endsAt = Math.min(until, deadlineAt);
  const at = failures.last !== null ? due : Math.max(moment.now, Math.min(due, endsAt));
  const all = state.delivery.kind === 'accepted' ? Infinity : MAX_SINGLE_READS_BEFORE_DELIVERY;
  const isSingle =
    failures.last !== null ||
    state.readRequestedAt !== null ||
    at >= endsAt ||
    (waitingForJob?.reads ?? polls) < (timerPolls === 'all' ? all : timerPolls);
  const known = waitingForJob === null ? (readsOf(state)?.last ?? null) : state.job;
  const step = { phase: requestPhase(state, phase), at };
  return isSingle || known === null
    ? { do: 'read', ...step }
    : { do: 'poll', ...step, until: endsAt, known, since };
}

function startOfPolling(state: FollowUpState): number {
  // The run before a reset may have made a POST at an unknown time.
  return state.waitingForJob?.since ?? state.sentAt ?? readsOf(state)?.freshFrom ?? 0;
}
