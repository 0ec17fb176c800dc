import {
  ActivityFailure,
  allHandlersFinished,
  CancellationScope,
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
import { getJob } from '../activity-proxies';
import { currentDetails } from './display';
import { historyBudgetWait } from './history-budget';
import { type FollowUpState, told } from './state';

export interface TimedAnswer {
  readonly answer: JobAnswer;
  readonly askedAt: number;
  readonly receivedAt: number;
}

/** `by-activity`: an activity polls by itself; `counting`: it has ended, and the workflow learns what it has counted. */
type Reads = 'singly' | 'by-activity' | 'counting';

interface Decision {
  readonly decision: DeliveryDecision;
  readonly runId: string;
}

/** One run of a follow-up: its state, and the few things that it does in time: read, wait, show, and what operators ask for. */
export class FollowUpContext {
  /** When the latest read was asked for. */
  lastAskedAt = 0;
  /** Somebody wants a read or has decided: no wait goes on. */
  wanted = false;
  decision: Decision | null = null;
  private readsBegun = 0;
  private readsEnded = 0;
  private busyWith: string | null = null;
  private reads: Reads = 'singly';
  private over = false;
  /** The length of the history in the latest workflow task that has taken an update, or has given up an activity. */
  private touchedAt = 0;

  constructor(readonly state: FollowUpState) {}

  get settings(): WorkerSettings {
    if (this.state.settings === null) throw new TypeError('the settings are used before they are learnt');
    return this.state.settings;
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
    this.showDetails();
  }

  /** Current details cost no event; search attributes cost one where they change. */
  show(outcome?: string): void {
    this.showDetails();
    const { plan, phase, job } = this.state;
    const all = [
      keyword('FollowUpPhase', phase),
      keyword('AgentProject', plan.projectId),
      keyword('AgentJob', plan.jobId),
    ];
    if (outcome !== undefined)
      all.push(keyword('FollowUpOutcome', outcomeText(outcome, told(this.state).verdict)));
    if (job?.status) all.push(keyword('AgentJobStatus', job.status));
    // What the server has: set by this run, or by the caller at the start.
    const { typedSearchAttributes } = workflowInfo();
    const changes = all.filter(({ key, value }) => value !== typedSearchAttributes.get(key));
    if (changes.length > 0) upsertSearchAttributes(changes);
  }

  private showDetails(): void {
    setCurrentDetails(currentDetails(this.state, this.reads === 'by-activity'));
  }

  /** @param busyWith in words: nothing may be read or decided meanwhile */
  async whileBusy<T>(busyWith: string, work: () => Promise<T>): Promise<T> {
    this.busyWith = busyWith;
    try {
      return await work();
    } finally {
      this.busyWith = null;
    }
  }

  setReads(reads: Reads, nextPollAt: number | null = null): void {
    this.reads = reads;
    this.state.nextPollAt = nextPollAt;
  }

  /** Why nobody can have a read now, which may be repeated; undefined where nothing is in the way. */
  noRead(): string | undefined {
    if (this.busyWith !== null) return `${this.busyWith}; there is nothing to poll yet`;
    return this.withinHistoryBudget(0) > 0
      ? 'the history has grown long, and must last until the deadline; the next read comes by itself'
      : undefined;
  }

  /** Ends the wait for the next read, and waits for that. One that is under way does not count. */
  async readNow(): Promise<void> {
    const before = this.readsBegun;
    this.touch();
    this.wanted = true;
    await condition(() => this.over || (this.readsEnded > before && this.reads !== 'counting'));
  }

  extendTo(deadlineAt: number): void {
    this.touch();
    this.state.deadlineAt = Math.max(this.state.deadlineAt, deadlineAt);
    this.show();
  }

  async decide(decision: Decision): Promise<void> {
    this.touch();
    this.decision = decision;
    this.wanted = true;
    await condition(() => this.over || this.state.phase !== 'needs-decision');
  }

  /** This task takes an update, or cancels an activity that may still report. */
  touch(): void {
    this.touchedAt = workflowInfo().historyLength;
  }

  /**
   * Whether the run may continue as new. The server refuses a task that ends a run while something else has come for it
   * (`UNHANDLED_COMMAND`), as the report of an activity that was given up; an update of that task would be lost.
   */
  get mayContinueAsNew(): boolean {
    const { continueAsNewSuggested, historyLength } = workflowInfo();
    // The next run would know nothing of a cancellation.
    if (CancellationScope.current().consideredCancelled) return false;
    return continueAsNewSuggested && historyLength > this.touchedAt && allHandlersFinished();
  }

  /** The follow-up has its end: pending update handlers return. A task that has given up an activity is not the last. */
  async end(last: () => Promise<void>): Promise<void> {
    this.over = true;
    await last();
    if (workflowInfo().historyLength <= this.touchedAt) await sleep(1);
    await condition(allHandlersFinished);
  }

  /** Waits on a durable timer, until the deadline or `pollNow` at most. */
  async pause(ms: number, summary: string): Promise<void> {
    const until = Math.min(Date.now() + this.withinHistoryBudget(ms), this.state.deadlineAt);
    if (until <= Date.now() || this.wanted) return;
    this.state.nextPollAt = until;
    this.show();
    await condition(() => this.wanted, until - Date.now(), { summary: singleLine(summary, 200) });
    this.state.nextPollAt = null;
  }

  withinHistoryBudget(ms: number): number {
    return Math.max(ms, historyBudgetWait(workflowInfo(), this.state.deadlineAt - Date.now()));
  }

  /** Reads the job once. Every failure is an answer, except the cancellation of the workflow. */
  async read(summary: string): Promise<TimedAnswer> {
    const askedAt = Date.now();
    this.lastAskedAt = askedAt;
    const { projectId, jobId } = this.state.plan;
    const answer = await this.asRead((insist) =>
      getJob(this.settings, { projectId, jobId, insist }, this.state.deadlineAt - askedAt, summary)
        .then((result: unknown) => (isJobAnswer(result) ? result : FOREIGN_READ))
        .catch((error: unknown) => answerOfLostRead(error)),
    );
    this.heard(answer);
    return { answer, askedAt, receivedAt: Date.now() };
  }

  /** @param work insists on its read if somebody has asked for it, or if it is the last one before the end */
  async asRead<T>(work: (insist: true | undefined) => Promise<T>): Promise<T> {
    const insists = this.wanted || Date.now() >= this.state.deadlineAt;
    this.wanted = false;
    this.readsBegun += 1;
    try {
      return await work(insists || undefined);
    } finally {
      // One that is cancelled has ended too, or a later `pollNow` would wait for it.
      this.readsEnded += 1;
    }
  }

  heard(answer: JobAnswer): void {
    const words = textOf(answer);
    if (answer.kind === 'job') this.state.job = answer.job;
    else if (this.state.lastAnswer !== words) log.warn(`read failed: ${words}`, { label: answer.label });
    this.state.lastAnswer = words;
  }
}

/** An operator has completed a read with something that is not an answer. */
export const FOREIGN_READ = {
  kind: 'trouble',
  label: 'read failed',
  message: 'the read was completed by somebody else, and not with an answer about the job',
} as const satisfies JobAnswer;

/** A read that no worker answered in time, or that failed by a bug: trouble like any other. */
export function answerOfLostRead(error: unknown): JobAnswer {
  if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  if (!(cause instanceof TimeoutFailure))
    return { ...FOREIGN_READ, message: singleLine(cause?.message ?? error.message, 300) };
  const message =
    'no worker answered the read in time: none polls the task queue of the reads, or a limit holds it up';
  return { kind: 'trouble', label: 'no worker', message };
}
