import { Context, log } from '@temporalio/activity';
import type { Tally } from '../core/activities';
import { ACTIVITY_TASKS } from '../temporal/sdk-internals';

/** A wait here holds a slot, and saves an attempt of 5 to 6 ms of CPU. */
const LONGEST_WAIT_MS = 30_000;

/** So that a limit on reads is respected within a minute. */
const ASK_EVERY_MS = 25_000;

export interface InProcessOptions {
  readonly maximum: number;
  /** Aborted when the worker begins to shut down: every wait is then handed over to the server. */
  readonly shutdown: AbortSignal;
}

export class InProcessPolls {
  private readonly polls = new Map<string, InProcessPoll>();
  private limited = false;
  private askedAt = -Infinity;
  private asking = Promise.resolve();

  constructor(private readonly options: InProcessOptions) {
    options.shutdown.addEventListener('abort', () => {
      for (const poll of this.polls.values()) poll.wake();
    });
  }

  async mayWait(poll: InProcessPoll, waitMs: number): Promise<boolean> {
    if (waitMs > LONGEST_WAIT_MS || this.options.shutdown.aborted) return false;
    const other = this.polls.get(poll.runId);
    if (other !== poll) {
      if (other === undefined && this.polls.size >= this.options.maximum) return false;
      // A later attempt has taken over, or a later poll of the same run.
      other?.stop();
      this.polls.set(poll.runId, poll);
    }
    // For all polls together.
    if (performance.now() - this.askedAt >= ASK_EVERY_MS) {
      this.askedAt = performance.now();
      this.asking = this.askForLimit();
    }
    await this.asking;
    return this.mayRead();
  }

  /** Else the read after a wait must pass the queue. */
  mayRead(): boolean {
    return !this.limited && !this.options.shutdown.aborted;
  }

  leave(poll: InProcessPoll): void {
    if (this.polls.get(poll.runId) === poll) this.polls.delete(poll.runId);
  }

  /** Ends the poll of a run, if it is in this process. @returns what it has counted */
  stop(runId: string): Tally | undefined {
    const poll = this.polls.get(runId);
    poll?.stop();
    // Its last read may still be under way.
    this.polls.delete(runId);
    return poll?.tally;
  }

  private async askForLimit(): Promise<void> {
    const { info, client } = Context.current();
    try {
      const { config } = await client.withDeadline(Date.now() + 5_000, () =>
        client.workflowService.describeTaskQueue({
          namespace: info.namespace,
          taskQueue: { name: info.taskQueue },
          taskQueueType: ACTIVITY_TASKS,
          reportConfig: true,
        }),
      );
      const limits = [config?.queueRateLimit, config?.fairnessKeysRateLimitDefault];
      this.limited = limits.some((limit) => typeof limit?.rateLimit?.requestsPerSecond === 'number');
      if (this.limited) for (const poll of this.polls.values()) poll.wake();
    } catch (error) {
      // An older server has no limits; one that does not answer is asked again.
      log.warn('the server does not tell whether reads are limited', { error });
    }
  }
}

export class InProcessPoll {
  /** What it reads from now on is not counted. */
  stopped = false;
  wake: () => void = () => undefined;

  constructor(
    readonly runId: string,
    public tally: Tally,
  ) {}

  /** @returns the rest of the wait, in milliseconds, where somebody has woken it */
  async wait(waitMs: number): Promise<number> {
    if (this.stopped) return waitMs;
    const until = performance.now() + waitMs;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    return Math.max(0, Math.ceil(until - performance.now()));
  }

  stop(): void {
    this.stopped = true;
    this.wake();
  }
}
