import { ApplicationFailure, CancelledFailure, TerminatedFailure, TimeoutFailure } from '@temporalio/client';
import type { FollowUpResult } from '../contract/result';
import { toFailureParts, toOutcomeName } from '../follow-up/failure-details';
import { toReceipt } from '../follow-up/receipt';
import type { FollowUpState } from '../follow-up/state';
import type { FollowUpOutcome } from '../follow-up/step';
import type { RunState } from '../temporal/workflow-executions';
import type { SimulatedOutcome } from './simulated-outcome';

/** The end of a simulated run, as the Temporal server would report it. */
export interface RunOutcome {
  readonly state: Exclude<RunState, 'running'>;
  /** Such as `completed` or `DeliveryUnknown`; null if the workflow could not report an outcome. */
  readonly outcome: string | null;
  readonly result: FollowUpResult | null;
  readonly cause: Error | undefined;
  readonly at: number;
}

/** The end of a run that a client or a timeout ends, without the workflow; null for every other end. */
export function outcomeFromClient({ end, message }: SimulatedOutcome, at: number): RunOutcome | null {
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

/** @param message replaces the message of a failure */
export function outcomeFromEngine(
  state: FollowUpState,
  outcome: FollowUpOutcome,
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
