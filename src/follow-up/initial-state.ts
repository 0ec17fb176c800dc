import { sha256Hex } from '../contract/ids';
import type { FollowUpPlan } from '../contract/request';
import { NO_FAILURES } from './failure-streak';
import type { FollowUpState } from './state';

export interface RunStart {
  readonly startedAt: number;
  readonly firstRunId: string;
  readonly isReset: boolean;
}

/** @param startedAt when the workflow started, after its start delay. The deadline counts from this time. */
export function initialState(
  { prompt, ...plan }: FollowUpPlan,
  { startedAt, firstRunId, isReset }: RunStart,
): FollowUpState {
  return {
    plan,
    promptDigest: sha256Hex(prompt),
    firstRunId,
    isReset,
    deadlineAt: startedAt + plan.deadlineMs,
    job: null,
    baseline: null,
    delivery: { kind: 'unsent' },
    sends: 0,
    sentAt: null,
    isResendUsed: false,
    jobLock: null,
    lockHolder: null,
    waitingForJob: null,
    failures: NO_FAILURES,
    polls: 0,
    responseCounts: {},
    lastRequestAt: 0,
    lastResponseAt: 0,
    pollNowAt: null,
    isCancelled: false,
  };
}
