import { log, setCurrentDetails, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import { keywordAttribute, outcomeAttribute } from '../../contract/follow-up-start-options';
import { currentDetails } from '../../follow-up/web-ui';
import { findEvidence, reportedDelivery } from '../../follow-up/receipt';
import type { FollowUpState } from '../../follow-up/state';
import type { Phase } from '../../contract/result';
import type { FollowUpRun } from './run';

/** Shows the state in the Web UI and in lists. Current details add no event. Search attributes add an event if they change. */
export function showState({ state, step }: FollowUpRun): void {
  setCurrentDetails(currentDetails(state, step));
  if (step.do !== 'end') upsertChanges(toAttributes(state, step.phase));
}

/**
 * Writes the outcome in the last workflow task. After a reset to this task, the new run writes the outcome again, with the verdict
 * of its own receipt.
 */
export function showOutcome(state: FollowUpState, phase: Phase, outcome: string): void {
  upsertChanges([
    ...toAttributes(state, phase),
    outcomeAttribute(outcome, reportedDelivery(state).verdict, findEvidence(state)),
  ]);
}

function toAttributes({ plan, job }: FollowUpState, phase: Phase) {
  return [
    keywordAttribute('FollowUpPhase', phase),
    keywordAttribute('AgentProject', plan.projectId),
    keywordAttribute('AgentJob', plan.jobId),
    ...(job === null || job.status === '' ? [] : [keywordAttribute('AgentJobStatus', job.status)]),
  ];
}

type Attribute = ReturnType<typeof keywordAttribute> | ReturnType<typeof outcomeAttribute>;

function upsertChanges(all: readonly Attribute[]): void {
  // Values that the Temporal server already has are not written again. The caller or this run has set them.
  const { typedSearchAttributes } = workflowInfo();
  const changes = all.filter(({ key, value }) => value !== typedSearchAttributes.get(key));
  if (changes.length > 0) upsertSearchAttributes(changes);
}

/** Logs a new phase, and a failed request whose message is new. */
export function logChanges(before: Pick<FollowUpRun, 'state' | 'step'>, { step, state }: FollowUpRun): void {
  const { phase } = step;
  if (before.step.phase !== phase) log.info(`follow-up is ${phase}`, { phase, status: state.job?.status });
  const { lastFailure } = state.failures;
  if (lastFailure !== null && lastFailure.message !== before.state.failures.lastFailure?.message)
    log.warn(`request failed: ${lastFailure.message}`, { label: lastFailure.label });
}
