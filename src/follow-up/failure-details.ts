import { type Problem, problemTexts } from '../contract/checks';
import { describeCancellation, describeDelivery } from '../contract/outcome';
import type { AgentJob } from '../contract/job';
import type { FailureDetails, FailureType, Receipt } from '../contract/result';
import { MAX_FAILURE_CHARACTERS, singleLine } from '../contract/text';
import { toReceipt } from './receipt';
import type { RunStart } from './initial-state';
import type { FollowUpState } from './state';
import type { FollowUpEnd } from './step';

/** The parts of the `ApplicationFailure` with which a follow-up ends. */
interface FailureParts {
  readonly type: FailureType;
  readonly message: string;
  readonly details: FailureDetails;
}

/** Creates the failure. Its message states the reason, and whether anything was sent. @param job the last job that was read */
export function toFailureParts(
  { type, reason, cause }: FollowUpEnd & { kind: 'failure' },
  job: AgentJob | null,
  receipt: Receipt,
): FailureParts {
  const { httpStatus, serviceMessage } = cause ?? {};
  const message = `${reason} ${describeDelivery(receipt.delivery)}`;
  const details = {
    ...{ job, receipt },
    // Some data converters write undefined as null, which is not a valid value of these fields.
    ...(httpStatus !== undefined && { httpStatus }),
    ...(serviceMessage !== undefined && { serviceMessage }),
  };
  return { type, message, details };
}

/** Returns the message with which a follow-up ends: of its failure or cancellation; null for a result. */
export function toEndMessage(outcome: FollowUpEnd, state: FollowUpState): string | null {
  const receipt = toReceipt(state, null);
  switch (outcome.kind) {
    case 'result':
      return null;
    case 'failure':
      return singleLine(toFailureParts(outcome, state.job, receipt).message, MAX_FAILURE_CHARACTERS);
    case 'cancelled':
      return describeCancellation(receipt);
  }
}

/**
 * Creates the failure of a workflow whose input is not a valid request. In a run that a reset made, the verdict is `unknown`,
 * because the run before the reset may have sent a message.
 */
export function createInvalidRequestParts(
  problems: readonly Problem[],
  workflowId: string,
  { isReset }: RunStart,
  now: number,
): FailureParts {
  const verdict = isReset ? 'unknown' : 'not-sent';
  const delivery = { verdict, confirmedBy: null, sends: isReset ? 1 : 0 } as const;
  const receipt = {
    requestId: workflowId,
    delivery,
    evidence: null,
    baseline: null,
    promptDigest: null,
    polls: 0,
    sentAt: null,
    endedAt: new Date(now).toISOString(),
    responseCounts: {},
  };
  const message = `${describeDelivery(delivery)} Invalid request: ${problemTexts(problems)}.`;
  return { type: 'InvalidRequest', message, details: { job: null, receipt } };
}

/** Returns the outcome for lists and metrics: the job's status, the failure's type, or `cancelled`. */
export function toOutcomeName(outcome: FollowUpEnd): string {
  switch (outcome.kind) {
    case 'result':
      return outcome.job.status;
    case 'failure':
      return outcome.type;
    case 'cancelled':
      return 'cancelled';
  }
}
