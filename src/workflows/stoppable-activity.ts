import { CancellationScope, condition } from '@temporalio/workflow';
import type { FollowUpRun } from './follow-up/run';

/** The activity of a step. The cancellation of the workflow does not cancel the activity; only `stop` does. */
export class StoppableActivity<Outcome> {
  /** The outcome of the activity. The value is undefined while the activity is pending. */
  outcome: Outcome | undefined;
  private readonly scope = new CancellationScope({
    cancellable: true,
    parent: new CancellationScope({ cancellable: false }),
  });

  /** @param start starts the activity and returns its outcome, also for a failed activity */
  constructor(
    private readonly run: Pick<FollowUpRun, 'state' | 'deferRunEnd'>,
    start: () => Promise<Outcome>,
  ) {
    // The promise is not awaited here. A bug in `start` fails the workflow task, as a bug in any other workflow code does.
    void this.scope.run(async () => {
      this.outcome = await start();
    });
  }

  /** Waits until the activity has ended or the condition is true. */
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
   * Cancels the activity, and waits until it has ended.
   *
   * @param timeoutMs the longest wait, in milliseconds @default no limit
   * @returns the outcome; undefined if the activity is still pending
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
