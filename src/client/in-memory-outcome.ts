import { ApplicationFailure, CancelledFailure, TerminatedFailure, TimeoutFailure } from '@temporalio/client';
import type { FollowUpResult } from '../contract/result';
import { toFailureParts, toOutcomeName } from '../follow-up/failure-details';
import { toReceipt } from '../follow-up/receipt';
import type { FollowUpState } from '../follow-up/state';
import type { FollowUpEnd } from '../follow-up/step';
import type { RunState } from '../temporal/workflow-executions';
import type { SimulatedOutcome } from './simulated-outcome';

/** The end of a simulated run in the form in which the Temporal server reports it. */
export interface RunOutcome {
  readonly state: Exclude<RunState, 'running'>;
  /** The outcome, such as `completed` or `DeliveryUnknown`; null if the workflow did not record an outcome. */
  readonly outcome: string | null;
  readonly result: FollowUpResult | null;
  /** The cause of a failure, a cancellation or a termination. */
  readonly cause: Error | undefined;
  /** The time of the end, in milliseconds since the epoch. */
  readonly at: number;
}

/** Returns the end of a run that a client terminated or that timed out; null for every other end. */
export function forcedRunOutcome({ end, message }: SimulatedOutcome, at: number): RunOutcome | null {
  const base = { outcome: null, result: null, at };
  if (end === 'terminated')
    return { ...base, state: end, cause: new TerminatedFailure(message ?? 'a test terminated the workflow') };
  if (end === 'timed-out')
    return {
      ...base,
      state: end,
      cause: new TimeoutFailure('the workflow timed out', undefined, 'START_TO_CLOSE'),
    };
  return null;
}

/**
 * Returns the end that the engine (the code that decides in the workflow) decided.
 *
 * @param message replaces the message of a failure if it is defined
 */
export function outcomeFromEngine(
  state: FollowUpState,
  outcome: FollowUpEnd,
  at: number,
  message: string | undefined,
): RunOutcome {
  const receipt = toReceipt(state, at);
  const base = { outcome: toOutcomeName(outcome), result: null, cause: undefined, at };
  switch (outcome.kind) {
    case 'result':
      return { ...base, state: 'completed', result: { ...outcome.job, receipt } };
    case 'cancelled':
      return { ...base, state: 'cancelled', cause: new CancelledFailure('The follow-up was cancelled.') };
    case 'failure': {
      const parts = toFailureParts(outcome, state.job, receipt);
      return failedRunOutcome({ ...parts, message: message ?? parts.message }, at);
    }
  }
}

export function failedRunOutcome(
  { type, message, details }: ReturnType<typeof toFailureParts>,
  at: number,
): RunOutcome {
  const cause = ApplicationFailure.nonRetryable(message, type, details);
  return { state: 'failed', outcome: type, result: null, cause, at };
}
