import { CancellationScope, condition } from '@temporalio/workflow';
import type { FollowUpRun } from './follow-up/run';

/** The activity of a step. Only the step cancels it, and not the cancellation of the workflow. */
export class StoppableActivity<End> {
  /** The end of the activity; undefined while it is pending. */
  end: End | undefined;
  private readonly scope = new CancellationScope({
    cancellable: true,
    parent: new CancellationScope({ cancellable: false }),
  });

  /** @param start returns the end, also for a failed activity */
  constructor(
    private readonly run: Pick<FollowUpRun, 'state' | 'touch'>,
    start: () => Promise<End>,
  ) {
    // A bug in `start` must fail the workflow task, as in any other code.
    void this.scope.run(async () => {
      this.end = await start();
    });
  }

  /** Waits until the activity has ended or an event has changed the state in this way. */
  async endedOr(isInterrupted: () => boolean): Promise<void> {
    await condition(() => this.end !== undefined || isInterrupted());
  }

  /** Waits until the activity has ended, the follow-up is cancelled, or its deadline has passed. */
  async endedOrDue(): Promise<void> {
    for (;;) {
      const { isCancelled, deadlineAt } = this.run.state;
      const leftMs = deadlineAt - Date.now();
      if (this.end !== undefined || isCancelled || leftMs <= 0) return;
      const isOver = () => {
        const { state } = this.run;
        return this.end !== undefined || state.isCancelled || state.deadlineAt !== deadlineAt;
      };
      await condition(isOver, leftMs, { summary: 'wait until the deadline' });
    }
  }

  /**
   * Cancels the activity, and waits for its end.
   *
   * @param limitMs the longest wait, in milliseconds @default none
   * @returns the end; undefined if the activity is still pending
   */
  async stop(limitMs?: number): Promise<End | undefined> {
    this.run.touch();
    this.scope.cancel();
    const hasEnded = () => this.end !== undefined;
    if (limitMs === undefined) await condition(hasEnded);
    else await condition(hasEnded, limitMs);
    return this.end;
  }
}
