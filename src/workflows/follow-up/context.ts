import {
  ActivityFailure,
  allHandlersFinished,
  condition,
  isCancellation,
  log,
  setCurrentDetails,
  sleep,
  TimeoutFailure,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { isJobAnswer, type JobAnswer, type WorkerSettings } from '../../core/activities';
import { type DeliveryDecision, outcomeText, type Phase } from '../../core/result';
import { keyword } from '../../core/starts';
import { textOf } from '../../core/tally';
import { singleLine } from '../../core/text';
import { readProxy } from '../activity-proxies';
import { currentDetails } from './display';
import { historyBudgetWait } from './history-budget';
import { type FollowUpState, told } from './state';

/** An answer with the moments between which it was made, in milliseconds since the epoch. */
export interface TimedAnswer {
  readonly answer: JobAnswer;
  readonly askedAt: number;
  readonly receivedAt: number;
}

/** One run of a follow-up: its state, and the few things that it does in time: read, wait, show. */
export class FollowUpContext {
  /** When the latest read was asked for, in milliseconds since the epoch. */
  lastAskedAt = 0;
  /** Looks at the job by this run, those of the send included; one that is under way is begun and not yet ended. */
  readsBegun = 0;
  readsEnded = 0;
  /** What it does while nothing may be read or decided, in words; null while that may be. */
  busyWith: string | null = null;
  /** `by-activity`: an activity polls by itself, and the workflow does not know yet what it has counted. */
  reads: 'singly' | 'by-activity' | 'counting' = 'singly';
  /** The follow-up has its end: pending update handlers return. */
  over = false;
  /** What an operator says of an unknown delivery, and for which run, until it is carried out. */
  decision: { readonly decision: DeliveryDecision; readonly runId: string } | null = null;
  /** How many updates this run has taken. */
  updates = 0;
  /** Somebody wants a read or has decided: the current wait ends, or the next one is skipped. */
  wanted = false;
  /** The length of the history in the latest workflow task that has taken an update; in the latest that has given up an activity. */
  private updatedAt = 0;
  private gaveUpAt = 0;

  constructor(readonly state: FollowUpState) {}

  get settings(): WorkerSettings {
    const { settings } = this.state;
    if (settings === null) throw new TypeError('the worker settings are used before they are learnt');
    return settings;
  }

  /** @param outcome with the last phase: how the follow-up has ended */
  enter(phase: Phase, outcome?: string): void {
    this.enterBriefly(phase);
    this.show(outcome);
  }

  /** For a phase that usually lasts milliseconds: filters see it only if it is shown later. */
  enterBriefly(phase: Phase): void {
    if (this.state.phase === phase) return;
    log.info(`follow-up is ${phase}`, { phase, status: this.state.job?.status });
    this.state.phase = phase;
    setCurrentDetails(currentDetails(this.state, this.reads === 'by-activity'));
  }

  /** Current details cost no event and follow every answer; search attributes cost one and change on transitions only. */
  show(outcome?: string): void {
    setCurrentDetails(currentDetails(this.state, this.reads === 'by-activity'));
    const { plan, phase, job } = this.state;
    const wanted = [
      keyword('FollowUpPhase', phase),
      ...(outcome === undefined
        ? []
        : [keyword('FollowUpOutcome', outcomeText(outcome, told(this.state).verdict))]),
      ...(job === null || job.status === '' ? [] : [keyword('AgentJobStatus', job.status)]),
      keyword('AgentProject', plan.projectId),
      keyword('AgentJob', plan.jobId),
    ];
    // What the server has: set by this run, or by the caller at the start.
    const { typedSearchAttributes } = workflowInfo();
    const changes = wanted.filter(({ key, value }) => value !== typedSearchAttributes.get(key));
    if (changes.length > 0) upsertSearchAttributes(changes);
  }

  takeUpdate(): void {
    this.updates += 1;
    this.updatedAt = workflowInfo().historyLength;
  }

  /** An activity is cancelled that goes on reporting. */
  giveUp(): void {
    this.gaveUpAt = workflowInfo().historyLength;
  }

  /**
   * Whether the run may continue as new. The server refuses a task that ends a run while something else has come for it
   * (`UNHANDLED_COMMAND`), as what is left to report of an activity that was given up; an update of that task would be lost.
   * A handler that waits for the next answer keeps this run as well.
   */
  get mayContinueAsNew(): boolean {
    const { continueAsNewSuggested, historyLength } = workflowInfo();
    return (
      continueAsNewSuggested &&
      historyLength > Math.max(this.updatedAt, this.gaveUpAt) &&
      allHandlersFinished()
    );
  }

  /** For the same reason, a run that has given up an activity ends in the next task. */
  async mayEnd(): Promise<void> {
    if (workflowInfo().historyLength <= this.gaveUpAt) await sleep(1);
    await condition(allHandlersFinished);
  }

  /** Waits on a durable timer, not beyond the deadline and not beyond `pollNow`. */
  async pause(ms: number, summary: string): Promise<void> {
    const until = Math.min(Date.now() + this.withinHistoryBudget(ms), this.state.deadlineAt);
    if (until <= Date.now() || this.wanted) return;
    this.state.nextPollAt = until;
    this.show();
    await condition(() => this.wanted, until - Date.now(), { summary: singleLine(summary, 200) });
    this.state.nextPollAt = null;
  }

  /** `ms`, or longer if the history has grown long. */
  withinHistoryBudget(ms: number): number {
    return Math.max(ms, historyBudgetWait(workflowInfo(), this.state.deadlineAt - Date.now()));
  }

  /** Reads the job once. Every failure is an answer, except the cancellation of the workflow. */
  async read(summary: string): Promise<TimedAnswer> {
    const askedAt = Date.now();
    this.lastAskedAt = askedAt;
    const { projectId, jobId } = this.state.plan;
    const answer = await this.look((insist) =>
      readProxy(this.settings, projectId, this.state.deadlineAt - askedAt, summary)
        .getJob({ projectId, jobId, ...insist })
        .then((result: unknown) => (isJobAnswer(result) ? result : FOREIGN_READ))
        .catch((error: unknown) => answerOfLostRead(error)),
    );
    this.note(answer);
    return { answer, askedAt, receivedAt: Date.now() };
  }

  /**
   * A look that is cancelled has ended too, or a later `pollNow` would wait for it.
   *
   * @param work is told to insist on its read if somebody has asked for it, or if it is the last one before the end
   */
  async look<T>(work: (insist: { readonly insist?: true }) => Promise<T>): Promise<T> {
    const insists = this.wanted || Date.now() >= this.state.deadlineAt;
    this.wanted = false;
    this.readsBegun += 1;
    try {
      return await work(insists ? { insist: true } : {});
    } finally {
      this.readsEnded += 1;
    }
  }

  note(answer: JobAnswer): void {
    if (answer.kind === 'job') this.state.job = answer.job;
    else if (this.state.lastAnswer !== answer.message)
      log.warn(`read failed: ${answer.message}`, { label: answer.label });
    this.state.lastAnswer = textOf(answer);
  }
}

/** An operator has completed a read with something that is not an answer. */
export const FOREIGN_READ = {
  kind: 'trouble',
  label: 'read failed',
  message: 'the read was completed by somebody else, and not with an answer about the job',
} as const satisfies JobAnswer;

/** A read that no worker has answered in time, or that failed by a bug: trouble like any other. */
export function answerOfLostRead(error: unknown): JobAnswer {
  if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  if (!(cause instanceof TimeoutFailure))
    return { ...FOREIGN_READ, message: singleLine(cause?.message ?? error.message, 300) };
  const message =
    'no worker answered the read in time: none polls the task queue of the reads, or a limit holds it up';
  return { kind: 'trouble', label: 'no worker', message };
}
