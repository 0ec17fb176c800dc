import { isJobLockHolder } from '../contract/send-result';
import { type RequestFailure } from '../contract/request-failure';
import {
  boolean,
  type Check,
  type Checked,
  count,
  objectOf,
  mapOf,
  literalOf,
  orNull,
  text,
  time,
} from '../contract/checks';
import { isAgentJob, isJobState } from '../contract/job';
import { isPlanWithoutPrompt } from '../contract/request';
import type { ConfirmedBy, Phase } from '../contract/result';
import { isObservations, type Observations } from './evidence';
import { isFailureStreak } from './failure-streak';
import type { SendPermit } from './permits';

/**
 * The known facts about the delivery of the message. After a POST that may have been processed, `reads` has the facts that the
 * reads since this POST have shown. Right after the POST, only the baseline and the time of the first fresh read are set.
 */
export type DeliveryState =
  /** No POST was made that the agent service may have processed. */
  | { readonly kind: 'unsent' }
  /** A POST may have been processed. */
  | {
      readonly kind: 'unknown';
      readonly reason: RequestFailure;
      readonly reads: Observations;
      /** Whether the reads during `reconcileTimeout` have ended without showing whether the message arrived. */
      readonly isReconcilingOver: boolean;
      /** The permit for one further POST. The value is null if no further POST is allowed. */
      readonly permit: SendPermit | null;
    }
  | AcceptedDelivery
  /** The agent service rejected a POST. An earlier POST may still have arrived. */
  | { readonly kind: 'rejected'; readonly reason: RequestFailure; readonly isEarlierPostUnknown: boolean };

const isAcceptedDelivery = objectOf({
  kind: literalOf('accepted'),
  confirmedBy: text as Check<ConfirmedBy>,
  reads: isObservations,
});
export type AcceptedDelivery = Checked<typeof isAcceptedDelivery>;

/** Returns the observations since the latest POST that may have been processed; null without such a POST. */
export function getObservations({ delivery }: { readonly delivery: DeliveryState }): Observations | null {
  return delivery.kind === 'accepted' || delivery.kind === 'unknown' ? delivery.reads : null;
}

/** The facts of every state apart from the delivery. Times are in milliseconds, by the workflow's clock. */
const facts = {
  plan: isPlanWithoutPrompt,
  /** SHA-256 of the prompt, in hexadecimal digits. */
  promptDigest: text,
  /** The first run of the workflow, which has the first permit. */
  firstRunId: text,
  /**
   * Whether a reset made this run or the run that it continues. The run before the reset may have sent a message, and this
   * history does not show that send.
   */
  isReset: boolean,
  deadlineAt: time,
  /** The job in the latest readable response. */
  job: orNull(isAgentJob),
  /**
   * The job in the baseline read of the latest POST that may have been processed. Without such a POST, the value is the job in
   * the baseline read of the latest send that made a POST, or that found that the job was not idle or that the workflow was
   * reset. The value is null if this read is not known.
   */
  baseline: orNull(isJobState),
  /** How many POSTs may have reached the agent service. */
  sends: count,
  /** The start time of the latest POST that was accepted or rejected, or whose delivery is unknown. */
  sentAt: orNull(time),
  /** Whether the one further POST of `onUnknownDelivery: resend` was allowed before, or may have been allowed before a reset. */
  isResendUsed: boolean,
  /** The job lock that this follow-up has acquired or may have acquired. The run ID is null if no activity has reported it. */
  jobLock: orNull(objectOf({ runId: orNull(text) })),
  /**
   * The other follow-up for whose end this follow-up waits, because it held the job lock at the latest send. The value is null if
   * this follow-up does not wait for the lock.
   */
  lockHolder: orNull(isJobLockHolder),
  /** The wait after a send found that the job is not idle: the start of the wait, and the number of reads since then. */
  waitingForJob: orNull(objectOf({ since: time, reads: count })),
  failures: isFailureStreak,
  /**
   * The number of reads since the first POST that may have been processed. A read during which a worker died may be counted,
   * although it has no response.
   */
  polls: count,
  /** How often the polls had each result, by job status or by failure label. */
  responseCounts: mapOf(count),
  /** When the latest read or send started. The value is 0 before the first one. */
  lastRequestAt: time,
  /** When the latest read or send ended. The wait for the next request counts from this time. */
  lastResponseAt: time,
  /**
   * When the next request became due at once, because of `pollNow` or because an interruption ended `pollJob`. The value is null
   * after this request.
   */
  pollNowAt: orNull(time),
  isCancelled: boolean,
};

/** All facts about a follow-up, as one immutable JSON value. Only `apply` makes a new state from a state. */
export interface FollowUpState extends Checked<ReturnType<typeof objectOf<typeof facts>>> {
  readonly delivery: DeliveryState;
}

/** Returns whether an operator must decide about an unknown delivery. */
export function isDecisionNeeded({ delivery, plan }: FollowUpState): boolean {
  const isOpen = delivery.kind === 'unknown' && delivery.isReconcilingOver && delivery.permit === null;
  return isOpen && plan.onUnknownDelivery === 'ask';
}

/** Returns why a follow-up in a phase accepts no decision about its delivery, as a clause. */
export function decisionPhaseProblem(phase: Phase): string {
  return `the follow-up is ${phase}; a decision is accepted only in the phase needs-decision`;
}

/**
 * The input of a run that continues another run. The input has neither a message nor a permit, so the new run can't send. Only
 * the watch of an accepted message continues as new.
 */
export const isContinuedFollowUp = objectOf({
  continued: objectOf({ ...facts, delivery: isAcceptedDelivery }),
});
export type ContinuedFollowUp = Checked<typeof isContinuedFollowUp>;

/** Returns the input of the next run; null if the state must not continue in another run. */
export function continuation(state: FollowUpState): ContinuedFollowUp | null {
  const { delivery, isCancelled } = state;
  return delivery.kind === 'accepted' && !isCancelled ? { continued: { ...state, delivery } } : null;
}
