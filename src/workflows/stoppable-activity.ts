import { CancellationScope, condition } from '@temporalio/workflow';
import type { FollowUpRun } from './follow-up/run';

/** The activity of a step. Only the step cancels it, and not the cancellation of the workflow. */
export class StoppableActivity<Outcome> {
  /** The end of the activity; undefined while it is pending. */
  outcome: Outcome | undefined;
  private readonly scope = new CancellationScope({
    cancellable: true,
    parent: new CancellationScope({ cancellable: false }),
  });

  /** @param start returns the end, also for a failed activity */
  constructor(
    private readonly run: Pick<FollowUpRun, 'state' | 'deferRunEnd'>,
    start: () => Promise<Outcome>,
  ) {
    // A bug in `start` must fail the workflow task, as in any other code.
    void this.scope.run(async () => {
      this.outcome = await start();
    });
  }

  /** Waits until the activity has ended or an event has changed the state in this way. */
  async waitForEndOr(isInterrupted: () => boolean): Promise<void> {
    await condition(() => this.outcome !== undefined || isInterrupted());
  }

  /** Waits until the activity has ended, the follow-up is cancelled, or its deadline has passed. */
  async waitForEndOrDeadline(): Promise<void> {
    for (;;) {
      const { isCancelled, deadlineAt } = this.run.state;
      const leftMs = deadlineAt - Date.now();
      if (this.outcome !== undefined || isCancelled || leftMs <= 0) return;
      const shouldStopWaiting = () => {
        const { state } = this.run;
        return this.outcome !== undefined || state.isCancelled || state.deadlineAt !== deadlineAt;
      };
      await condition(shouldStopWaiting, leftMs, { summary: 'wait until the deadline' });
    }
  }

  /**
   * Cancels the activity, and waits for its end.
   *
   * @param timeoutMs the longest wait, in milliseconds @default none
   * @returns the end; undefined if the activity is still pending
   */
  async stop(timeoutMs?: number): Promise<Outcome | undefined> {
    this.run.deferRunEnd();
    this.scope.cancel();
    const hasEnded = () => this.outcome !== undefined;
    if (timeoutMs === undefined) await condition(hasEnded);
    else await condition(hasEnded, timeoutMs);
    return this.outcome;
  }
}
