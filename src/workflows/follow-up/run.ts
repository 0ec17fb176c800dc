import { allHandlersFinished, workflowInfo } from '@temporalio/workflow';
import { apply, type FollowUpEvent } from '../../follow-up/apply';
import { minWaitForHistoryMs } from '../../follow-up/history-budget';
import { nextStep } from '../../follow-up/next-step';
import { continuation, type ContinuedFollowUp, type FollowUpState } from '../../follow-up/state';
import type { Step } from '../../follow-up/step';

/** A run of a follow-up, with the current state and the step that the loop performs. Only `apply` replaces the state. */
export class FollowUpRun {
  step: Step;
  /** Whether the send activity of the step is scheduled and its outcome is not applied yet. */
  isSending = false;
  /** The length of the history in the latest workflow task that must not end the run, see `shouldDeferRunEnd`. */
  private deferredAtHistoryLength = 0;

  /** @param prompt the message; null in a run that continues another run, because such a run never sends */
  constructor(
    private current: FollowUpState,
    readonly prompt: string | null,
  ) {
    this.step = nextStep(current, Date.now(), Math.random);
  }

  get state(): FollowUpState {
    return this.current;
  }

  apply(event: FollowUpEvent): void {
    this.current = apply(this.current, event);
  }

  /** Applies the event of an update or a cancellation, which interrupts the step that is being performed. */
  interrupt(event: FollowUpEvent): void {
    this.deferRunEnd();
    this.apply(event);
  }

  decideStep(): Step {
    const { delivery, deadlineAt } = this.current;
    const now = Date.now();
    // Before the delivery, a run can't continue as new, so its history must last until the deadline.
    const minWaitMs =
      delivery.kind === 'accepted' ? 0 : minWaitForHistoryMs(workflowInfo(), deadlineAt - now);
    this.step = nextStep(this.current, now, Math.random, minWaitMs);
    return this.step;
  }

  /** Prevents the current workflow task from ending the run, see `shouldDeferRunEnd`. */
  deferRunEnd(): void {
    this.deferredAtHistoryLength = workflowInfo().historyLength;
  }

  /**
   * Whether the current workflow task received an update or a cancellation, or cancelled an activity. During such a task, another
   * event may arrive, for example a second update or the end of the activity. The Temporal server then rejects a task that ends
   * the run (`UNHANDLED_COMMAND`), and an update of that task would be lost.
   */
  get shouldDeferRunEnd(): boolean {
    return workflowInfo().historyLength <= this.deferredAtHistoryLength;
  }

  /** The input with which the run continues as new; null if the run must not continue as new or its history is still short. */
  get continuation(): ContinuedFollowUp | null {
    const { continueAsNewSuggested } = workflowInfo();
    if (!continueAsNewSuggested || this.shouldDeferRunEnd || !allHandlersFinished()) return null;
    return continuation(this.current);
  }
}
