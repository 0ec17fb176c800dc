import {
  ActivityFailure,
  condition,
  isCancellation,
  log,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { JobAnswer, WorkerSettings } from '../contract/activities';
import { truncate } from '../contract/bounds';
import type { DeliveryDecision, Phase } from '../contract/progress';
import { readProxy, settingsProxy } from './activity-proxies';
import { Display } from './display';
import { sparingWait } from './sparing';
import type { FollowUpState } from './state';

/** An answer with the moments between which it was made, in milliseconds since the epoch. */
export interface Heard {
  readonly answer: JobAnswer;
  readonly askedAt: number;
  readonly heardAt: number;
}

/** One run of a follow-up: its state, and the few things that it does in time: read, wait, show. */
export class Run {
  /** When the latest read was asked for. */
  lastAskedAt = 0;
  /** Reads of this run; one that is under way is asked and not yet answered. */
  readsAsked = 0;
  readsAnswered = 0;
  /** The message is on its way: nothing may be read or decided until the send has ended. */
  sending = false;
  /** The follow-up has its end: what waits for its progress goes home. */
  over = false;

  private pollWanted = false;
  private decision: DeliveryDecision | null = null;
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
    if (this.state.phase !== phase)
      log.info(`follow-up is ${phase}`, { phase, status: this.state.job?.status });
    this.state.phase = phase;
    this.show();
  }

  /** Brings what an operator sees up to date. */
  show(): void {
    this.display.show(this.state);
  }

  /** Ends the current wait, or skips the next one. */
  pollNow(): void {
    this.pollWanted = true;
  }

  /** Takes what an operator says of an unknown delivery, and ends the current wait. */
  decide(decision: DeliveryDecision): void {
    this.decision = decision;
    this.pollWanted = true;
  }

  /** The operator's decision, once: a further unknown delivery asks again. */
  takeDecision(): DeliveryDecision | null {
    const { decision } = this;
    this.decision = null;
    return decision;
  }

  /** Waits on a durable timer, not beyond the deadline and not beyond `pollNow`. */
  async pause(ms: number, summary: string): Promise<void> {
    const until = Math.min(Date.now() + this.sparing(ms), this.state.deadlineAt);
    if (until <= Date.now() || this.pollWanted) return;
    this.state.nextPollAt = until;
    this.show();
    await condition(() => this.pollWanted, until - Date.now(), { summary: truncate(summary, 200) });
    this.state.nextPollAt = null;
  }

  /** `ms`, or longer where the history has become long. */
  sparing(ms: number): number {
    return Math.max(ms, sparingWait(workflowInfo().historyLength, this.state.deadlineAt - Date.now()));
  }

  /** Reads the job once. Whatever goes wrong is an answer, except the cancellation of the workflow. */
  async read(summary: string): Promise<Heard> {
    this.pollWanted = false;
    const askedAt = Date.now();
    this.lastAskedAt = askedAt;
    this.readsAsked += 1;
    const { projectId, jobId } = this.state.plan;
    const answer = await readProxy(this.settings, summary)
      .getJob({ projectId, jobId })
      .catch((error: unknown) => answerOfLostRead(error));
    this.readsAnswered += 1;
    if (answer.kind === 'job') {
      this.state.job = answer.job;
      this.state.lastAnswer = answer.job.status;
    } else {
      if (this.state.lastAnswer !== answer.message)
        log.warn(`read failed: ${answer.message}`, { label: answer.label });
      this.state.lastAnswer = answer.message;
    }
    return { answer, askedAt, heardAt: Date.now() };
  }

  get deadlinePassed(): boolean {
    return Date.now() >= this.state.deadlineAt;
  }
}

/** A read that no worker has answered in time, or that failed by a bug: trouble like any other. */
function answerOfLostRead(error: unknown): JobAnswer {
  if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
  if (error.cause instanceof TimeoutFailure) {
    const message = 'no worker answered the read in time; does one poll the task queue of the reads?';
    return { kind: 'trouble', label: 'no worker', message };
  }
  return {
    kind: 'trouble',
    label: 'read failed',
    message: truncate(error.cause?.message ?? error.message, 300),
  };
}
