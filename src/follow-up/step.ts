import type { JobLockHolder } from '../contract/send-result';
import type { RequestFailure } from '../contract/request-failure';
import { type AgentJob, type JobState } from '../contract/job';
import type { Evidence, FailureType, Phase } from '../contract/result';
import { nextWaitMs, type Random } from './cadence';
import { isUnauthorized } from './failure-streak';
import type { SendPermit } from './permits';
import { type FollowUpState, getObservations } from './state';

/** How a follow-up ends. `toOutcomeName` returns the name of its outcome. */
export type FollowUpEnd =
  | { readonly kind: 'result'; readonly job: AgentJob; readonly evidence: Evidence }
  | {
      readonly kind: 'failure';
      readonly type: FailureType;
      /** The reason in complete sentences. The failure's message also describes the delivery. */
      readonly reason: string;
      /** The failed request that ended the follow-up, if a failed request ended it. */
      readonly cause: RequestFailure | null;
    }
  | { readonly kind: 'cancelled' };

/** The next action of a follow-up. Before `at`, the follow-up waits with a durable timer or in the retry delay of `pollJob`. */
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
    /**
     * Reads the job with one activity until a response differs from `lastState` or a read fails. The first read at `decidesAt`
     * or later ends the activity too.
     */
    | {
        readonly do: 'poll';
        readonly at: number;
        readonly decidesAt: number;
        readonly lastState: JobState;
        readonly pollingStartedAt: number;
      }
    /** Applies `onUnknownDelivery`, because reads can't show whether the message arrived, or `reconcileTimeout` is over. */
    | { readonly do: 'conclude reconciling' }
    | { readonly do: 'end'; readonly outcome: FollowUpEnd }
  );

/** The values on which a decision depends in addition to the state. */
export interface Moment {
  readonly now: number;
  readonly random: Random;
  /** The shortest wait before a request, in milliseconds, see `nextStep`. */
  readonly minWaitMs: number;
}

/** Returns the phase of a step that sends a request. The phase is `unauthorized` while the agent service rejects the API key. */
export function phaseForRequest({ failures }: FollowUpState, phase: Phase): Phase {
  // Operators find a follow-up that needs a decision by its phase, so a rejected read does not change this phase.
  return phase !== 'needs-decision' && isUnauthorized(failures) ? 'unauthorized' : phase;
}

/** Returns the time when the next request is due: after the poll interval, or after the wait that a failure causes. */
function nextRequestAt(state: FollowUpState, ageMs: number, moment: Moment): number {
  const { now, random, minWaitMs } = moment;
  if (state.pollNowAt !== null) return now;
  const waitMs = Math.max(minWaitMs, nextWaitMs(state.plan.polling, ageMs, state.failures, random));
  return Math.max(now, Math.min(state.lastResponseAt + waitMs, state.deadlineAt));
}

/**
 * Returns when the next request may be made at the earliest if no poll interval applies: now, or after the wait that a failure
 * or a long history causes.
 */
export function earliestRequestAt(state: FollowUpState, moment: Moment): number {
  const isDelayed = state.failures.lastFailure !== null || moment.minWaitMs > 0;
  return isDelayed ? nextRequestAt(state, 0, moment) : moment.now;
}

/** Returns the step that reads the job once at `decidesAt`, because an earlier read can't decide anything. */
export function readAt(state: FollowUpState, phase: Phase, decidesAt: number, moment: Moment): Step {
  const earliest = earliestRequestAt(state, moment);
  const isRequested = state.pollNowAt !== null;
  const at = isRequested ? earliest : Math.max(earliest, Math.min(decidesAt, state.deadlineAt));
  return { do: 'read', phase: phaseForRequest(state, phase), at };
}

/**
 * The maximum number of single reads in one wait before the delivery with `timerPolls: all`, because a run can't continue as new
 * before the delivery. Later reads of this wait use `pollJob`, which adds no events.
 */
const MAX_SINGLE_READS_BEFORE_DELIVERY = 200;

/**
 * Returns the step that reads the job at the next interval. The step is a single read for the first `timerPolls` reads, before
 * the first readable response after the POST, after a failure, at `decidesAt`, and if an operator requested a read. Otherwise,
 * the step is `poll`.
 *
 * @param decidesAt the time from which on every response can decide something. The read at this time is a single read or the last
 * read of `pollJob`.
 * @param pollingStartedAt the time from which on the poll interval grows @default the start of the turn, or of the wait for an idle
 * job
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
    state.pollNowAt !== null ||
    at >= endsAt ||
    (waitingForJob?.reads ?? polls) < (timerPolls === 'all' ? all : timerPolls);
  const lastState = waitingForJob === null ? (getObservations(state)?.last ?? null) : state.job;
  const step = { phase: phaseForRequest(state, phase), at };
  return isSingle || lastState === null
    ? { do: 'read', ...step }
    : { do: 'poll', ...step, decidesAt: endsAt, lastState, pollingStartedAt };
}

function getPollingStart(state: FollowUpState): number {
  // `sentAt` is null if the run before a reset may have made the POST, because the time of that POST is not known.
  return state.waitingForJob?.since ?? state.sentAt ?? getObservations(state)?.freshFrom ?? 0;
}
