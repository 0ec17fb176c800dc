import {
  ActivityFailure,
  condition,
  isCancellation,
  log,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { JobAnswer, WorkerSettings } from '../../core/activities';
import { isJobAnswer } from '../../core/wire-checks';
import type { DeliveryDecision, Phase } from '../../core/result';
import { textOf } from '../../core/tally';
import { singleLine } from '../../core/text';
import { readProxy, settingsProxy } from '../activity-proxies';
import { Display } from './display';
import { historyBudgetWait, noRoomFor, type OperatorStep } from './history-budget';
import type { FollowUpState } from './state';

/** An answer with the moments between which it was made, in milliseconds since the epoch. */
export interface TimedAnswer {
  readonly answer: JobAnswer;
  readonly askedAt: number;
  readonly receivedAt: number;
}

/** What an operator says of an unknown delivery, and for which run; undefined stands for the first one. */
export interface Decision {
  readonly decision: DeliveryDecision;
  readonly runId: string | undefined;
}

/** One run of a follow-up: its state, and the few things that it does in time: read, wait, show. */
export class FollowUpContext {
  /** When the latest read was asked for, in milliseconds since the epoch. */
  lastAskedAt = 0;
  /** Looks at the job by this run, those of the send included; one that is under way is begun and not yet ended. */
  readsBegun = 0;
  readsEnded = 0;
  /** The send activity is pending: nothing may be read or decided until it has ended. */
  sending = false;
  /** `by-activity`: an activity polls by itself, and the workflow does not know yet what it has counted. */
  reads: 'singly' | 'by-activity' | 'counting' = 'singly';
  /** The follow-up has its end: pending update handlers return. */
  over = false;
  /** The operator's decision, until it is carried out. */
  decision: Decision | null = null;

  /** How many updates this run has taken. */
  updates = 0;

  private pollWanted = false;
  private readonly display = new Display();

  constructor(readonly state: FollowUpState) {}

  /** Learns the worker's settings. They are recorded in history, so that every replay knows the same ones. */
  async learnSettings(): Promise<void> {
    this.state.settings = await settingsProxy.workerSettings();
  }

  get settings(): WorkerSettings {
    const { settings } = this.state;
    if (settings === null) throw new TypeError('the worker settings are used before they are learnt');
    return settings;
  }

  /** Moves on to a phase, and shows it. */
  enter(phase: Phase): void {
    this.enterBriefly(phase);
    this.show();
  }

  /** Moves on to a phase that usually lasts milliseconds. Filters see it only if it is shown later. */
  enterBriefly(phase: Phase): void {
    if (this.state.phase === phase) return;
    log.info(`follow-up is ${phase}`, { phase, status: this.state.job?.status });
    this.state.phase = phase;
  }

  /** Brings what an operator sees up to date. */
  show(): void {
    this.display.show(this.state, this.reads === 'by-activity');
  }

  /** Ends the current wait, or skips the next one. */
  pollNow(): void {
    this.pollWanted = true;
  }

  /** Takes what an operator says of an unknown delivery, and ends the current wait. */
  decide(decision: Decision): void {
    this.decision = decision;
    this.pollWanted = true;
  }

  /** Somebody wants a read now, or has decided. */
  get wanted(): boolean {
    return this.pollWanted;
  }

  /** Waits on a durable timer, not beyond the deadline and not beyond `pollNow`. */
  async pause(ms: number, summary: string): Promise<void> {
    const until = Math.min(Date.now() + this.withinHistoryBudget(ms), this.state.deadlineAt);
    if (until <= Date.now() || this.pollWanted) return;
    this.state.nextPollAt = until;
    this.show();
    await condition(() => this.pollWanted, until - Date.now(), { summary: singleLine(summary, 200) });
    this.state.nextPollAt = null;
  }

  /** `ms`, or longer if the history has grown long. */
  withinHistoryBudget(ms: number): number {
    return Math.max(ms, historyBudgetWait(workflowInfo(), this.state.deadlineAt - Date.now()));
  }

  /** Why the history has no room for what an operator asks for; undefined while it has. */
  noRoomFor(step: OperatorStep): string | undefined {
    return noRoomFor(step, workflowInfo(), this.updates, this.state.deadlineAt - Date.now());
  }

  /** Reads the job once. Every failure is an answer, except the cancellation of the workflow. */
  async read(summary: string): Promise<TimedAnswer> {
    const askedAt = Date.now();
    this.lastAskedAt = askedAt;
    const { projectId, jobId } = this.state.plan;
    const answer = await this.look(() =>
      readProxy(this.settings, projectId, this.state.deadlineAt - askedAt, summary)
        .getJob({ projectId, jobId })
        .then((result: unknown) => (isJobAnswer(result) ? result : FOREIGN_READ))
        .catch((error: unknown) => answerOfLostRead(error)),
    );
    this.note(answer);
    return { answer, askedAt, receivedAt: Date.now() };
  }

  /** Does what answers a `pollNow`. One that is cancelled has ended too, or a later `pollNow` would wait for it. */
  async look<T>(work: () => Promise<T>): Promise<T> {
    this.pollWanted = false;
    this.readsBegun += 1;
    try {
      return await work();
    } finally {
      this.readsEnded += 1;
    }
  }

  /** Keeps an answer as the latest one. */
  note(answer: JobAnswer): void {
    if (answer.kind === 'job') this.state.job = answer.job;
    else if (this.state.lastAnswer !== answer.message)
      log.warn(`read failed: ${answer.message}`, { label: answer.label });
    this.state.lastAnswer = textOf(answer);
  }

  /**
   * Whether an activity may poll on after a wait: nobody asks for a read now, and so much time is left that one that fails
   * slowly still ends before the deadline, at which the last read is a single one.
   */
  mayPollOn(waitMs: number): boolean {
    const leftMs = this.state.deadlineAt - Date.now();
    return !this.pollWanted && leftMs > waitMs + 2 * this.settings.httpTimeoutMs;
  }

  get deadlinePassed(): boolean {
    return Date.now() >= this.state.deadlineAt;
  }
}

/** An operator has completed a read with something that is none. */
export const FOREIGN_READ: JobAnswer = {
  kind: 'trouble',
  label: 'read failed',
  message: 'the read was completed by somebody else, and not with an answer about the job',
};

/** A read that no worker has answered in time, or that failed by a bug: trouble like any other. */
export function answerOfLostRead(error: unknown): JobAnswer {
  if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
  if (error.cause instanceof TimeoutFailure) {
    const message =
      'no worker answered the read in time: none polls the task queue of the reads, or a limit holds it up';
    return { kind: 'trouble', label: 'no worker', message };
  }
  return {
    kind: 'trouble',
    label: 'read failed',
    message: singleLine(error.cause?.message ?? error.message, 300),
  };
}
