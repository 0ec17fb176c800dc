import { CancellationScope, continueAsNew, metricMeter } from '@temporalio/workflow';
import { recordMetric } from '../../contract/metrics';
import type { FollowUpRequest } from '../../contract/request';
import type { FollowUpResult } from '../../contract/result';
import { reportedDelivery } from '../../follow-up/receipt';
import type { ContinuedFollowUp } from '../../follow-up/state';
import { workerSettings } from '../activity-proxies';
import { logChanges, showState } from './display';
import { endFollowUp } from './end-follow-up';
import { acceptInput } from './input';
import { registerHandlers } from './updates';
import { perform } from './perform';
import type { FollowUpRun } from './run';

/**
 * Sends one message to an agent job, and waits for the job durably. The message is never sent twice unless the request or an
 * operator allows it.
 *
 * docs/architecture.md describes the design, and docs/guarantees.md lists the guarantees for each fault.
 *
 * @returns the final job with its `prLink`, and the receipt that states how the result is known
 * @throws ApplicationFailure non-retryable, of a type in `FAILURE_TYPES`, with `FailureDetails` as its first detail
 */
export async function followUp(input: FollowUpRequest | ContinuedFollowUp): Promise<FollowUpResult> {
  const run = acceptInput(input);
  registerHandlers(run);
  CancellationScope.current().cancelRequested.catch(() => {
    run.interrupt({ kind: 'cancelled' });
  });
  // The cancellation of the workflow is an event like any other event: `apply` changes the state, and `nextStep` ends the
  // follow-up.
  return CancellationScope.nonCancellable(() => runToCompletion(run));
}

async function runToCompletion(run: FollowUpRun): Promise<FollowUpResult> {
  const settings = await workerSettings();
  let isDeliveryCounted = run.state.delivery.kind === 'accepted';
  let before = { state: run.state, step: run.step };
  for (;;) {
    const step = run.decideStep();
    showState(run);
    logChanges(before, run);
    before = { state: run.state, step };
    if (!isDeliveryCounted && (run.state.delivery.kind === 'accepted' || step.do === 'end')) {
      isDeliveryCounted = true;
      recordMetric(metricMeter, 'deliveries', 1, { verdict: reportedDelivery(run.state).verdict });
    }
    if (step.do === 'end') return endFollowUp(run, step.outcome, settings);
    const next = run.continuation;
    if (next !== null) await continueAsNew<(input: ContinuedFollowUp) => Promise<FollowUpResult>>(next);
    const event = await perform(step, run, settings);
    if (event !== null) run.apply(event);
  }
}
