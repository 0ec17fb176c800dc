import type { JobLockHolder, RequestFailure } from '../contract/activities';
import { type AgentJob, type JobState } from '../contract/job';
import type { Evidence, FailureType, Phase } from '../contract/result';
import { nextWaitMs, type Random } from './cadence';
import { isUnauthorized } from './failure-streak';
import type { SendPermit } from './permits';
import { type FollowUpState, getDeliveryReads } from './state';

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
        readonly decidesAt: number;
        readonly lastState: JobState;
        readonly pollingStartedAt: number;
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
export function phaseForRequest({ failures }: FollowUpState, phase: Phase): Phase {
  // A follow-up that needs a decision can be found by its phase, whatever its reads return.
  return phase !== 'needs-decision' && isUnauthorized(failures) ? 'unauthorized' : phase;
}

/** When the next request is due by the poll interval, or after the wait that a failure causes. */
function nextRequestAt(state: FollowUpState, ageMs: number, moment: Moment): number {
  const { now, random, minWaitMs } = moment;
  if (state.readRequestedAt !== null) return now;
  const waitMs = Math.max(minWaitMs, nextWaitMs(state.plan.polling, ageMs, state.failures, random));
  return Math.max(now, Math.min(state.lastResponseAt + waitMs, state.deadlineAt));
}

/** The earliest time for a request that needs no poll interval: now, but after a failure not before the wait that it causes. */
export function earliestRequestAt(state: FollowUpState, moment: Moment): number {
  const isDelayed = state.failures.lastFailure !== null || moment.minWaitMs > 0;
  return isDelayed ? nextRequestAt(state, 0, moment) : moment.now;
}

/** Reads once at `decidesAt`, when a read can decide something. */
export function readAt(state: FollowUpState, phase: Phase, decidesAt: number, moment: Moment): Step {
  const earliest = earliestRequestAt(state, moment);
  const isRequested = state.readRequestedAt !== null;
  const at = isRequested ? earliest : Math.max(earliest, Math.min(decidesAt, state.deadlineAt));
  return { do: 'read', phase: phaseForRequest(state, phase), at };
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
 * @param decidesAt when a read decides something whatever it returns: a single read, or the last one of `pollJob`
 * @param pollingStartedAt the poll interval grows with the time since then @default the start of the turn, or of the wait for an idle job
 */
export function readOrPoll(
  state: FollowUpState,
  phase: Phase,
  decidesAt: number,
  moment: Moment,
  pollingStartedAt = getPollingStart(state),
): Step {
  const { plan, failures, waitingForJob, deadlineAt, polls } = state;
  const { timerPolls } = plan.polling;
  const due = nextRequestAt(state, moment.now - pollingStartedAt, moment);
  const endsAt = Math.min(decidesAt, deadlineAt);
  const at = failures.lastFailure !== null ? due : Math.max(moment.now, Math.min(due, endsAt));
  const all = state.delivery.kind === 'accepted' ? Infinity : MAX_SINGLE_READS_BEFORE_DELIVERY;
  const isSingle =
    failures.lastFailure !== null ||
    state.readRequestedAt !== null ||
    at >= endsAt ||
    (waitingForJob?.reads ?? polls) < (timerPolls === 'all' ? all : timerPolls);
  const lastState = waitingForJob === null ? (getDeliveryReads(state)?.last ?? null) : state.job;
  const step = { phase: phaseForRequest(state, phase), at };
  return isSingle || lastState === null
    ? { do: 'read', ...step }
    : { do: 'poll', ...step, decidesAt: endsAt, lastState: lastState, pollingStartedAt: pollingStartedAt };
}

function getPollingStart(state: FollowUpState): number {
  // The run before a reset may have made a POST at an unknown time.
  return state.waitingForJob?.since ?? state.sentAt ?? getDeliveryReads(state)?.freshFrom ?? 0;
}
