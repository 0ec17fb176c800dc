import {
  ActivityFailure,
  condition,
  isCancellation,
  log,
  patched,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { JobAnswer, WorkerSettings } from '../contract/activities';
import { truncate } from '../contract/bounds';
import { wordsOf } from '../polling/tally';
import type { DeliveryDecision, Phase } from '../contract/progress';
import { readProxy, settingsProxy } from './activity-proxies';
import { Display } from './display';
import { sparingWait } from './sparing';
import type { FollowUpState } from './state';

/** Since 0.2.0 a read may poll on by its own retries. */
const PATIENT_READS = 'patient-reads';

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
  /** `patiently`: a read activity polls by its own retries, and what it has counted only the server knows. */
  reads: 'singly' | 'patiently' | 'counting' = 'singly';
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
    this.display.show(this.state, this.reads === 'patiently');
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

  /** Somebody wants a read now, or has decided. */
  get wanted(): boolean {
    return this.pollWanted;
  }

  /** An operator has decided, and nobody has taken the decision yet. */
  get decided(): boolean {
    return this.decision !== null;
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
    const answer = await readProxy(this.settings, projectId, this.state.deadlineAt - askedAt, summary)
      .getJob({ projectId, jobId })
      .catch((error: unknown) => answerOfLostRead(error));
    this.readsAnswered += 1;
    this.hear(answer);
    return { answer, askedAt, heardAt: Date.now() };
  }

  /** Keeps an answer as the latest one. */
  hear(answer: JobAnswer): void {
    if (answer.kind === 'job') this.state.job = answer.job;
    else if (this.state.lastAnswer !== answer.message)
      log.warn(`read failed: ${answer.message}`, { label: answer.label });
    this.state.lastAnswer = wordsOf(answer);
  }

  /**
   * Whether a read may take its time: nobody asks for one now, the run knows of patience, and so much time is left that
   * one that fails slowly still ends before the deadline, at which the last read is a single one.
   *
   * The patch is for a roll-out: where a worker of 0.1.0 has taken this run over for a while, its reads were single ones,
   * and a replay must find them.
   */
  mayBePatient(): boolean {
    const { patienceMs, httpTimeoutMs } = this.settings;
    const leftMs = this.state.deadlineAt - Date.now();
    if (this.pollWanted || patienceMs === undefined || leftMs <= 2 * httpTimeoutMs) return false;
    return patched(PATIENT_READS);
  }

  get deadlinePassed(): boolean {
    return Date.now() >= this.state.deadlineAt;
  }
}

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
    message: truncate(error.cause?.message ?? error.message, 300),
  };
}
