import { encodeTimeoutType, type RetryState } from '@temporalio/common';
import type { coresdk } from '@temporalio/proto';
import {
  type ActivityEnd,
  activityFailure,
  type Failure,
  toMs,
  type Payload,
  type Payloads,
  type Resolution,
  type Scheduled,
  toPayload,
} from './history';
import type { Run } from './run';

/** The timeouts of an activity: the name in the Temporal server's messages, and the option. 0 or no value means no timeout. */
const LIMITS = {
  SCHEDULE_TO_START: ['ScheduleToStart', 'scheduleToStartTimeout'],
  SCHEDULE_TO_CLOSE: ['ScheduleToClose', 'scheduleToCloseTimeout'],
  START_TO_CLOSE: ['StartToClose', 'startToCloseTimeout'],
  HEARTBEAT: ['Heartbeat', 'heartbeatTimeout'],
} as const;
type Limit = keyof typeof LIMITS;

const NO_TIME_LEFT =
  'Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up retrying';

/**
 * An activity on the Temporal server, from its scheduling to its end: attempts, timeouts, heartbeat details, and the operations of an
 * operator. A token identifies the current attempt. Heartbeats and reports of other attempts are rejected.
 */
export class PendingActivity {
  attempt = 1;
  state: 'queued' | 'started' | 'backing off' | 'paused' | 'closed' = 'queued';
  attemptScheduledAt = 0;
  startedAt = 0;
  details: Payloads | undefined;
  paused = false;
  lastFailure: Failure | undefined;
  readonly scheduledAt: number;
  private cancelRequested = false;
  private wasReset = false;
  private failedAt = 0;
  private maximumAttempts: number;
  private readonly timers = new Map<Limit | 'RETRY', () => void>();

  constructor(
    readonly run: Run,
    readonly seq: number,
    readonly options: Scheduled,
  ) {
    this.scheduledAt = run.server.clock.now;
    this.maximumAttempts = options.retryPolicy?.maximumAttempts ?? 0;
    this.startTimeout('SCHEDULE_TO_CLOSE');
    this.queue();
  }

  get name(): string {
    return this.options.activityType ?? '';
  }

  get token(): string {
    return `${this.run.runId}/${this.seq}/${this.attempt}`;
  }

  /** The state in a workflow description. A running activity that is paused or cancelled is no longer shown as started. */
  get shownState() {
    if (this.cancelRequested) return 'CANCEL_REQUESTED';
    if (this.state === 'started') return this.paused ? 'PAUSE_REQUESTED' : 'STARTED';
    return this.paused ? 'PAUSED' : 'SCHEDULED';
  }

  /** A worker starts the attempt. @returns false if the attempt no longer waits for a worker */
  start(): boolean {
    if (this.state !== 'queued') return false;
    this.state = 'started';
    this.startedAt = this.now;
    this.lastFailure = undefined;
    this.wasReset = false;
    this.clearTimer('SCHEDULE_TO_START');
    this.startAttemptTimeouts();
    return true;
  }

  /** Records a heartbeat. @returns undefined if the Temporal server does not wait for this attempt */
  heartbeat(token: string, details: Payloads | undefined) {
    if (!this.isRunning(token)) return undefined;
    if (details !== undefined) this.details = details;
    this.startTimeout('HEARTBEAT');
    const { cancelRequested, paused: activityPaused, wasReset: activityReset } = this;
    return { cancelRequested, activityPaused, activityReset };
  }

  /**
   * Records the end of an attempt.
   *
   * @param end the result that the SDK reports
   * @param details the last heartbeat details of a failed attempt, which the next attempt gets
   * @returns false if the Temporal server does not wait for this attempt
   */
  report(token: string, end: coresdk.activity_result.IActivityExecutionResult, details?: Payloads): boolean {
    if (!this.isRunning(token)) return false;
    if (end.failed && details !== undefined) this.details = details;
    if (end.completed) this.completeManually(end.completed.result ?? null);
    else if (end.cancelled && this.cancelRequested) this.endCancelled();
    else this.attemptFailed('ActivityTaskFailed', (end.failed ?? end.cancelled)?.failure ?? {});
    return true;
  }

  /** A client completes the activity by its ID, independently of the current attempt. */
  completeManually(result: Payload | null): void {
    this.end('ActivityTaskCompleted', { completed: { result } }, true);
  }

  /** The workflow requests the cancellation. If no worker runs the activity, it ends at once. */
  requestCancel(): void {
    this.cancelRequested = true;
    if (this.state !== 'started') this.endCancelled(toPayload('ACTIVITY_ID_NOT_STARTED'));
  }

  /** Pauses the activity. The simulation pauses only the send, which has no heartbeat timeout and no schedule-to-close timeout. */
  pause(): void {
    this.paused = true;
    this.clearTimer('START_TO_CLOSE');
    if (this.state === 'started') return;
    this.clearTimer('RETRY');
    this.clearTimer('SCHEDULE_TO_START');
    this.state = 'paused';
  }

  unpause(): void {
    this.paused = false;
    if (this.state === 'paused') this.queue();
    if (this.state === 'started') this.startAttemptTimeouts();
  }

  /**
   * Resets the activity like `temporal activity reset`: the attempt number is 1 again, and the heartbeat details stay. The token depends on the
   * attempt number, so a running attempt with a higher number can no longer report.
   */
  reset(): void {
    this.attempt = 1;
    if (this.state === 'started') this.wasReset = true;
    else if (this.state === 'backing off') this.queue();
  }

  /** Changes the maximum number of attempts. Changed options also replace a requested `nextRetryDelay` with the wait of the retry policy. */
  allowAttempts(attempts: number): void {
    this.maximumAttempts = attempts;
    if (this.state === 'backing off') this.backOff(this.failedAt + this.retryDelayMs(0) - this.now);
  }

  /** Removes the activity, because it has ended or its workflow is closed. */
  drop(): void {
    this.state = 'closed';
    for (const timer of [...this.timers.keys()]) this.clearTimer(timer);
  }

  private get now(): number {
    return this.run.server.clock.now;
  }

  private isRunning(token: string): boolean {
    return this.state === 'started' && token === this.token;
  }

  private queue(): void {
    this.clearTimer('RETRY');
    this.state = 'queued';
    this.attemptScheduledAt = this.now;
    this.startTimeout('SCHEDULE_TO_START');
    this.run.server.enqueue(this, `${this.run.workflowId} ${this.name}`);
  }

  private startAttemptTimeouts(): void {
    this.startTimeout('START_TO_CLOSE', this.startedAt);
    this.startTimeout('HEARTBEAT');
  }

  private startTimeout(limit: Limit, since = this.now): void {
    const [name, option] = LIMITS[limit];
    const ms = toMs(this.options[option]);
    if (ms === 0) return;
    this.setTimer(limit, since + ms - this.now, () => {
      const failure = this.timeout(limit, `activity ${name} timeout`);
      if (limit === 'SCHEDULE_TO_CLOSE') this.endScheduleToClose();
      else if (limit === 'SCHEDULE_TO_START') this.endFailed('ActivityTaskTimedOut', failure, 'TIMEOUT');
      else this.attemptFailed('ActivityTaskTimedOut', failure);
    });
  }

  /** Ends the activity with a schedule-to-close timeout: also if an attempt timed out and no time is left for another attempt. */
  private endScheduleToClose(): void {
    this.endFailed('ActivityTaskTimedOut', this.timeout('SCHEDULE_TO_CLOSE', NO_TIME_LEFT), 'TIMEOUT');
  }

  private timeout(limit: Limit, message: string): Failure {
    return {
      message,
      source: 'Server',
      cause: this.lastFailure ?? null,
      timeoutFailureInfo: {
        timeoutType: encodeTimeoutType(limit) ?? null,
        lastHeartbeatDetails: this.details ? { payloads: this.details } : null,
      },
    };
  }

  private setTimer(timer: Limit | 'RETRY', ms: number, work: () => void): void {
    this.clearTimer(timer);
    this.timers.set(timer, this.run.server.clock.after(ms, work));
  }

  private clearTimer(timer: Limit | 'RETRY'): void {
    this.timers.get(timer)?.();
    this.timers.delete(timer);
  }

  private attemptFailed(end: ActivityEnd, failure: Failure): void {
    this.clearTimer('START_TO_CLOSE');
    this.clearTimer('HEARTBEAT');
    const { nonRetryable, nextRetryDelay } = failure.applicationFailureInfo ?? {};
    const waitMs = this.retryDelayMs(toMs(nextRetryDelay));
    const mostMs = toMs(this.options.scheduleToCloseTimeout);
    if (nonRetryable) this.endFailed(end, failure, 'NON_RETRYABLE_FAILURE');
    else if (this.cancelRequested) this.endFailed(end, failure, 'CANCEL_REQUESTED');
    else if (this.maximumAttempts > 0 && this.attempt >= this.maximumAttempts)
      this.endFailed(end, failure, 'MAXIMUM_ATTEMPTS_REACHED');
    else if (mostMs > 0 && this.now + waitMs >= this.scheduledAt + mostMs) {
      if (end === 'ActivityTaskTimedOut') this.endScheduleToClose();
      else this.endFailed(end, failure, 'TIMEOUT');
    } else {
      this.lastFailure = { ...failure, cause: null };
      this.failedAt = this.now;
      this.attempt += 1;
      if (this.paused) this.state = 'paused';
      else this.backOff(waitMs);
    }
  }

  /** @param requestedMs the `nextRetryDelay` of the failure; 0 if it has none */
  private retryDelayMs(requestedMs: number): number {
    const { initialInterval, backoffCoefficient, maximumInterval } = this.options.retryPolicy ?? {};
    const initialMs = toMs(initialInterval) || 1_000;
    const byPolicy = initialMs * (backoffCoefficient ?? 2) ** (this.attempt - 1);
    return Math.min(requestedMs || byPolicy, toMs(maximumInterval) || 100 * initialMs);
  }

  private backOff(ms: number): void {
    this.state = 'backing off';
    this.run.server.onEvent(this.run, `${this.name} backs off`);
    this.setTimer('RETRY', ms, () => this.queue());
  }

  private endFailed(end: ActivityEnd, cause: Failure, state: RetryState): void {
    const message = end === 'ActivityTaskTimedOut' ? 'Activity task timed out' : 'Activity task failed';
    this.end(end, { failed: { failure: activityFailure(this, message, cause, state) } });
  }

  /** Ends the activity as cancelled. The event has details, but no message. */
  private endCancelled(...payloads: Payload[]): void {
    const cause = { message: '', canceledFailureInfo: { details: { payloads } } };
    const failure = activityFailure(this, 'Activity cancelled', cause, 'CANCEL_REQUESTED');
    this.end('ActivityTaskCanceled', { cancelled: { failure } });
  }

  /** @param wasStarted whether a worker started the attempt, or a client completed the activity */
  private end(type: ActivityEnd, resolution: Resolution, wasStarted = this.state === 'started'): void {
    this.drop();
    this.run.activityEnded(this.seq, wasStarted, { type, seq: this.seq, resolution });
  }
}
