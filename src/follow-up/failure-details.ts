import { type Problem, problemTexts } from '../contract/checks';
import { describeDelivery } from '../contract/outcome';
import type { AgentJob } from '../contract/job';
import type { FailureDetails, FailureType, Receipt } from '../contract/result';
import type { RunStart } from './state';
import type { FollowUpOutcome } from './step';

/** The parts of the `ApplicationFailure` with which a follow-up ends. */
interface FailureParts {
  readonly type: FailureType;
  readonly message: string;
  readonly details: FailureDetails;
}

/** The message states the reason, and whether anything was sent. @param job the last job that was read */
export function toFailureParts(
  { type, reason, cause }: FollowUpOutcome & { kind: 'failure' },
  job: AgentJob | null,
  receipt: Receipt,
): FailureParts {
  const { httpStatus, serviceMessage } = cause ?? {};
  const message = `${reason} ${describeDelivery(receipt.delivery)}`;
  return { type, message, details: { job, receipt, httpStatus, serviceMessage } };
}

/** The failure of a workflow whose input is not a request. A run that a reset made can't know whether anything was sent. */
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

/** The outcome as lists and metrics have it: the job's status, the failure's type, or `cancelled`. */
export function toOutcomeName(outcome: FollowUpOutcome): string {
  switch (outcome.kind) {
    case 'result':
      return outcome.job.status;
    case 'failure':
      return outcome.type;
    case 'cancelled':
      return 'cancelled';
  }
}
