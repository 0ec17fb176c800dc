import { temporal } from '@temporalio/proto';
import type { Timers } from '../clock';
import {
  type ActivityOptions,
  type EventType,
  type Failure,
  type Payload,
  type Payloads,
  type Resolution,
  toPayload,
} from './history';

const { TimeoutType, RetryState } = temporal.api.enums.v1;

/** As the server names them in its messages. */
const TIMEOUTS = {
  SCHEDULE_TO_START: 'ScheduleToStart',
  SCHEDULE_TO_CLOSE: 'ScheduleToClose',
  START_TO_CLOSE: 'StartToClose',
  HEARTBEAT: 'Heartbeat',
} as const;
type TimeoutKind = keyof typeof TIMEOUTS;

const NO_TIME_LEFT =
  'Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up retrying';

/** How an activity ends for its workflow. */
export type ActivityEnd = Extract<
  EventType,
  'ActivityTaskCompleted' | 'ActivityTaskFailed' | 'ActivityTaskTimedOut' | 'ActivityTaskCanceled'
>;

/** What the server does for an activity: it has a queue and a history. */
export interface ActivityOwner {
  readonly clock: Timers;
  /** An attempt waits in its queue from now on. */
  enqueue(activity: PendingActivity): void;
  /** An attempt has failed, and the next one waits for its time. */
  backsOff(activity: PendingActivity): void;
  /** `wasStarted`: a worker has had the attempt, or somebody has completed it. */
  close(activity: PendingActivity, end: ActivityEnd, resolution: Resolution, wasStarted: boolean): void;
}

/** What the server answers to a heartbeat. */
export interface HeartbeatAnswer {
  readonly cancelRequested: boolean;
  readonly activityPaused: boolean;
  readonly activityReset: boolean;
}

/**
 * An activity from its schedule to its end, as the server keeps it: attempts, time-outs, heartbeat details, and what an
 * operator may change. An attempt is known by its token; what comes from another one is refused.
 */
export class PendingActivity {
  attempt = 1;
  state: 'queued' | 'started' | 'backing off' | 'paused' | 'closed' = 'queued';
  attemptScheduledAt = 0;
  details: Payloads | undefined;
  cancelRequested = false;
  paused = false;
  private wasReset = false;
  lastFailure: Failure | undefined;
  private readonly scheduledAt: number;
  private startedAt = 0;
  private failedAt = 0;
  private attempts: number;
  private readonly timers = new Map<TimeoutKind | 'retry', () => void>();

  constructor(
    private readonly owner: ActivityOwner,
    readonly workflow: { readonly workflowId: string; readonly runId: string; readonly workflowType: string },
    readonly seq: number,
    readonly options: ActivityOptions,
  ) {
    this.scheduledAt = owner.clock.now;
    this.attempts = options.retry.attempts;
    if (options.scheduleToCloseMs > 0) this.expire('SCHEDULE_TO_CLOSE', options.scheduleToCloseMs);
    this.queue();
  }

  get name(): string {
    return this.options.name;
  }

  get token(): string {
    return `${this.workflow.runId}/${this.seq}/${this.attempt}`;
  }

  /** A worker takes the attempt up. @returns what it is given; undefined if there is nothing to do any more */
  start() {
    if (this.state !== 'queued') return undefined;
    this.state = 'started';
    this.startedAt = this.owner.clock.now;
    this.lastFailure = undefined;
    this.wasReset = false;
    this.stop('SCHEDULE_TO_START');
    this.watchStarted();
    const { scheduledAt, attemptScheduledAt, attempt, details, token } = this;
    return { token, attempt, details, scheduledAt, attemptScheduledAt, startedAt: this.startedAt };
  }

  /** @returns undefined if the server does not wait for this attempt */
  heartbeat(token: string, details: Payloads | undefined): HeartbeatAnswer | undefined {
    if (!this.isRunning(token)) return undefined;
    if (details !== undefined) this.details = details;
    this.watchHeartbeat();
    const { cancelRequested, paused, wasReset } = this;
    return { cancelRequested, activityPaused: paused, activityReset: wasReset };
  }

  complete(token: string, result: Payload | null | undefined): boolean {
    if (!this.isRunning(token)) return false;
    this.end('ActivityTaskCompleted', { completed: { result: result ?? null } });
    return true;
  }

  cancelled(token: string, failure: Failure): boolean {
    if (!this.isRunning(token)) return false;
    if (this.cancelRequested) this.endCancelled();
    else this.attemptFailed('ActivityTaskFailed', failure);
    return true;
  }

  /** @param details the last ones of the attempt, which the next one gets */
  fail(token: string, failure: Failure, details: Payloads | undefined): boolean {
    if (!this.isRunning(token)) return false;
    if (details !== undefined) this.details = details;
    this.attemptFailed('ActivityTaskFailed', failure);
    return true;
  }

  /** Somebody completes it by its id, whichever attempt is under way. */
  completeByHand(result: Payload): void {
    this.end('ActivityTaskCompleted', { completed: { result } });
  }

  /** The workflow no longer wants it. One that no worker has is over at once. */
  requestCancel(): void {
    this.cancelRequested = true;
    if (this.state === 'started') return;
    this.endCancelled(toPayload('ACTIVITY_ID_NOT_STARTED'));
  }

  /** Only a send is paused, which has neither of the other time-outs. */
  pause(): void {
    if (this.paused) return;
    this.paused = true;
    this.stop('START_TO_CLOSE');
    if (this.state === 'queued' || this.state === 'backing off') {
      this.stop('retry');
      this.stop('SCHEDULE_TO_START');
      this.state = 'paused';
    }
  }

  unpause(): void {
    if (!this.paused) return;
    this.paused = false;
    if (this.state === 'paused') this.queue();
    if (this.state === 'started') this.watchStarted();
  }

  /**
   * As `temporal activity reset` does it: the attempts begin anew, and the details stay. An attempt is known by its number
   * alone: one that is under way, and was not the first, has lost its token.
   */
  reset(): void {
    this.attempt = 1;
    if (this.state === 'started') this.wasReset = true;
    else if (this.state === 'backing off') this.queue();
  }

  /** Other options let the wait for the next attempt be the one of the policy, whatever the failure has asked for. */
  allowAttempts(attempts: number): void {
    this.attempts = attempts;
    if (this.state === 'backing off') this.backOff(this.failedAt + this.waitMs(0) - this.owner.clock.now);
  }

  /** The workflow is over: nobody waits for it any more. */
  drop(): void {
    this.state = 'closed';
    for (const stop of this.timers.values()) stop();
    this.timers.clear();
  }

  private isRunning(token: string): boolean {
    return this.state === 'started' && token === this.token;
  }

  private queue(): void {
    this.stop('retry');
    this.state = 'queued';
    this.attemptScheduledAt = this.owner.clock.now;
    const { scheduleToStartMs } = this.options;
    if (scheduleToStartMs > 0) this.expire('SCHEDULE_TO_START', scheduleToStartMs);
    this.owner.enqueue(this);
  }

  private watchStarted(): void {
    const { startToCloseMs } = this.options;
    if (startToCloseMs > 0)
      this.expire('START_TO_CLOSE', this.startedAt + startToCloseMs - this.owner.clock.now);
    this.watchHeartbeat();
  }

  private watchHeartbeat(): void {
    if (this.options.heartbeatMs > 0) this.expire('HEARTBEAT', this.options.heartbeatMs);
  }

  private expire(kind: TimeoutKind, ms: number): void {
    this.at(kind, ms, () => {
      const failure = this.timeout(kind, `activity ${TIMEOUTS[kind]} timeout`);
      if (kind === 'START_TO_CLOSE' || kind === 'HEARTBEAT')
        this.attemptFailed('ActivityTaskTimedOut', failure);
      else if (kind === 'SCHEDULE_TO_START')
        this.endFailed('ActivityTaskTimedOut', failure, RetryState.RETRY_STATE_TIMEOUT);
      else this.endOutOfTime();
    });
  }

  /** The server says so too when an attempt has timed out, and there is no time for another one. */
  private endOutOfTime(): void {
    const failure = this.timeout('SCHEDULE_TO_CLOSE', NO_TIME_LEFT);
    this.endFailed('ActivityTaskTimedOut', failure, RetryState.RETRY_STATE_TIMEOUT);
  }

  private timeout(kind: TimeoutKind, message: string): Failure {
    return {
      message,
      source: 'Server',
      cause: this.lastFailure ?? null,
      timeoutFailureInfo: {
        timeoutType: TimeoutType[`TIMEOUT_TYPE_${kind}`],
        lastHeartbeatDetails: this.details === undefined ? null : { payloads: [...this.details] },
      },
    };
  }

  private at(kind: TimeoutKind | 'retry', ms: number, work: () => void): void {
    this.stop(kind);
    this.timers.set(kind, this.owner.clock.after(ms, work));
  }

  private stop(kind: TimeoutKind | 'retry'): void {
    this.timers.get(kind)?.();
    this.timers.delete(kind);
  }

  private attemptFailed(end: ActivityEnd, failure: Failure): void {
    const { scheduleToCloseMs } = this.options;
    this.stop('START_TO_CLOSE');
    this.stop('HEARTBEAT');
    if (failure.applicationFailureInfo?.nonRetryable === true) {
      this.endFailed(end, failure, RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE);
      return;
    }
    if (this.cancelRequested) {
      this.endFailed(end, failure, RetryState.RETRY_STATE_CANCEL_REQUESTED);
      return;
    }
    if (this.attempts > 0 && this.attempt >= this.attempts) {
      this.endFailed(end, failure, RetryState.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED);
      return;
    }
    const asked = failure.applicationFailureInfo?.nextRetryDelay;
    const askedMs = asked ? Number(asked.seconds) * 1_000 + Number(asked.nanos) / 1e6 : 0;
    const waitMs = this.waitMs(askedMs);
    if (scheduleToCloseMs > 0 && this.owner.clock.now + waitMs >= this.scheduledAt + scheduleToCloseMs) {
      if (end === 'ActivityTaskTimedOut') this.endOutOfTime();
      else this.endFailed(end, failure, RetryState.RETRY_STATE_TIMEOUT);
      return;
    }
    this.lastFailure = { ...failure, cause: null };
    this.failedAt = this.owner.clock.now;
    this.attempt += 1;
    if (this.paused) {
      this.state = 'paused';
      return;
    }
    this.backOff(waitMs);
  }

  private waitMs(askedMs: number): number {
    const { initialMs, coefficient, maximumMs } = this.options.retry;
    const byPolicy = initialMs * coefficient ** (this.attempt - 1);
    return Math.min(askedMs > 0 ? askedMs : byPolicy, maximumMs > 0 ? maximumMs : 100 * initialMs);
  }

  private backOff(ms: number): void {
    this.state = 'backing off';
    this.owner.backsOff(this);
    this.at('retry', ms, () => this.queue());
  }

  private endFailed(end: ActivityEnd, cause: Failure, retryState: number): void {
    const message = end === 'ActivityTaskTimedOut' ? 'Activity task timed out' : 'Activity task failed';
    this.end(end, { failed: { failure: this.activityFailure(message, cause, retryState) } });
  }

  /** The event has details, and no message. */
  private endCancelled(...details: Payload[]): void {
    const cause = { message: '', canceledFailureInfo: { details: { payloads: details } } };
    const failure = this.activityFailure(
      'Activity cancelled',
      cause,
      RetryState.RETRY_STATE_CANCEL_REQUESTED,
    );
    this.end('ActivityTaskCanceled', { cancelled: { failure } });
  }

  private activityFailure(message: string, cause: Failure, retryState: number): Failure {
    const { seq, name } = this;
    const activityFailureInfo = {
      activityId: String(seq),
      activityType: { name },
      retryState,
      identity: 'simulation',
    };
    return { message, cause, activityFailureInfo };
  }

  private end(end: ActivityEnd, resolution: Resolution): void {
    const wasStarted = this.state === 'started' || end === 'ActivityTaskCompleted';
    this.drop();
    this.owner.close(this, end, resolution, wasStarted);
  }
}
