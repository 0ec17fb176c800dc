import type { AgentJob, TerminalStatus } from '../src/contract/job';
import type { Random } from './random';

/** The plan of a turn. */
export interface TurnPlan {
  /**
   * - `pull-request`: the turn opens a pull request if the job has none; otherwise, the link stays the same
   * - `new-pull-request`: the turn always opens a pull request, so that the link changes
   * - `no-change`: the turn changes no file, and the link stays the same
   * - `failed`: the turn ends with an unrecoverable error of the agent
   *
   * @default 'pull-request'
   */
  readonly outcome?: 'pull-request' | 'new-pull-request' | 'no-change' | 'failed';
  /**
   * The duration in milliseconds, or null for a turn that ends only through a later message, `reads` or a changed status.
   *
   * @default the sandbox's `turnMs`, varied by up to a fifth
   */
  readonly durationMs?: number | null;
  /**
   * The turn ends with the response to this read. Reads count from 1 since the start of the turn. The turn then has no default
   * duration, but a `durationMs` of its own can end it earlier.
   */
  readonly reads?: number;
  /**
   * The milliseconds from the arrival of a message to the start of its effect. Until then, the job continues as without the message.
   *
   * @default 0
   */
  readonly takeUpMs?: number;
}

/** A turn of a job. All times are in epoch milliseconds. */
export interface Turn extends TurnPlan {
  /** The number of the message, which counts from 1 per job. The number is 0 for a turn that no message started. */
  readonly number: number;
  readonly prompt: string | null;
  /** The time from which the turn interrupts other turns, or waits for their end. */
  readonly takenUpAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** The state. A later message, or a status that a test sets, makes a turn `interrupted`. */
  readonly state: 'queued' | 'running' | 'ended' | 'interrupted';
}

/** The initial job. */
export interface JobStart extends Omit<AgentJob, 'status'> {
  readonly status: 'active' | TerminalStatus;
}

export type JobChange = Partial<Pick<JobStart, 'status' | 'prLink'>>;

/** The job from the time `at` on, in epoch milliseconds. */
export interface PastJob {
  readonly at: number;
  readonly job: AgentJob;
}

/** A moment in the life of a job, as a time and as a number of reads. */
interface Moment {
  /** Epoch milliseconds. */
  readonly at: number;
  /** The number of earlier reads. */
  readonly reads: number;
}

export interface LifeRules {
  /** Returns the time in epoch milliseconds. */
  readonly now: () => number;
  readonly random: Random;
  /** The duration of a turn without its own duration, in milliseconds. */
  readonly turnMs: number;
  /** The plans of the turns in order. The last plan repeats. */
  readonly plans: readonly TurnPlan[];
  /** The effect of a message to an `active` job. The message is processed in both cases. */
  readonly whileActive: 'interrupt' | 'queue';
  /** Opens a pull request. @returns its link */
  readonly openPullRequest: () => string;
}

/** The maximum number of stored changes, and of stored reads, of a job. A longer lag returns the oldest stored state. */
const MAX_CHANGES = 200;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * The life of one job as a state machine without timers. Every call first applies the changes that are due, in order. The same calls at
 * the same times give the same life.
 */
export class JobLife {
  /** The job right before the last message, and the time of the message. Undefined before the first message. */
  beforeLastMessage: (Moment & { readonly job: AgentJob }) | undefined;
  /** The number of reads, including the read that is in progress. */
  reads = 0;
  private readonly allTurns: Mutable<Turn>[] = [];
  /** The states of the job, oldest first. The list has at least one entry. */
  private readonly jobHistory: PastJob[] = [];
  /** The result of each read, oldest first. */
  private readonly readResults: PastJob[] = [];
  /** The latest terminal status, and the moment of the change. For a job that starts active, the status is `completed`. */
  private terminal: Moment & { readonly status: TerminalStatus };
  private prLink: string | null;
  private archivedAt: string | null;
  /** The number of reads before the start of the running turn. */
  private earlierReads = 0;

  constructor(
    private readonly start: JobStart,
    private readonly rules: LifeRules,
  ) {
    const at = rules.now();
    this.terminal = { status: start.status === 'active' ? 'completed' : start.status, at, reads: 0 };
    this.prLink = start.prLink;
    this.archivedAt = start.archivedAt;
    if (start.status === 'active') this.startTurn(this.newTurn(null), at);
    else this.recordChange(at);
  }

  /** Returns the job that the agent service returns now. */
  job(): AgentJob {
    this.catchUp();
    return this.current();
  }

  /** Returns the job at a time, or the oldest stored job. Undefined if the job has not changed since then. */
  jobAt(at: number): AgentJob | undefined {
    this.catchUp();
    const index = Math.max(
      0,
      this.jobHistory.findLastIndex((change) => change.at <= at),
    );
    return index === this.jobHistory.length - 1 ? undefined : this.jobHistory[index]?.job;
  }

  /** Returns the result of an earlier read, counted back from the last read. Undefined if the job has not changed since then. */
  jobAtRead(before: number): AgentJob | undefined {
    const then = this.readResults.at(-1 - before) ?? this.jobHistory[0];
    return then === this.jobHistory.at(-1) ? undefined : then?.job;
  }

  /** Returns the states of the job, oldest first. The oldest states are removed if there are too many. */
  changes(): readonly PastJob[] {
    this.catchUp();
    return [...this.jobHistory];
  }

  /** Returns the job. While the job is active, the link is null, as in the specification. */
  private current(): AgentJob {
    const active = this.running() !== undefined;
    return {
      ...this.start,
      status: active ? 'active' : this.terminal.status,
      prLink: active ? null : this.prLink,
      archivedAt: this.archivedAt,
    };
  }

  /** Returns the job for a read. The read may end the turn. */
  read(): AgentJob {
    this.catchUp();
    const running = this.running();
    if (running?.reads === this.reads + 1 - this.earlierReads) this.finish(running, this.rules.now());
    this.reads += 1;
    const job = this.job();
    this.readResults.push(...this.jobHistory.slice(-1));
    if (this.readResults.length > MAX_CHANGES) this.readResults.shift();
    return job;
  }

  turns(): readonly Turn[] {
    this.catchUp();
    return this.allTurns.map((turn) => ({ ...turn }));
  }

  /** Returns the time since which the job has its terminal status, in epoch milliseconds, or null while the job is active. */
  terminalSince(): number | null {
    this.catchUp();
    return this.running() === undefined ? this.terminal.at : null;
  }

  /** Returns the number of reads since the job got its latest terminal status. */
  readsSinceTerminal(): number {
    return this.reads - this.terminal.reads;
  }

  /** Processes a message, which adds a turn. @param plan replaces parts of the turn's plan @returns the number of the turn */
  receive(prompt: string, plan: TurnPlan = {}): number {
    const now = this.rules.now();
    this.beforeLastMessage = { job: this.job(), at: now, reads: this.reads };
    const { number } = this.newTurn(prompt, plan);
    this.catchUp();
    return number;
  }

  /**
   * Changes the job. A new status interrupts the running turn and the queued turns. A message whose effect has not started
   * (`takeUpMs`) stays. The status `active` starts a turn.
   */
  change({ status, prLink }: JobChange): void {
    const now = this.rules.now();
    this.catchUp();
    if (status !== undefined) {
      this.interrupt(now);
      this.archivedAt = status === 'archived' ? (this.archivedAt ?? new Date(now).toISOString()) : null;
      if (status === 'active') this.startTurn(this.newTurn(null), now);
      else this.terminal = { status, at: now, reads: this.reads };
    }
    if (prLink !== undefined) this.prLink = prLink;
    this.recordChange(now);
  }

  private newTurn(prompt: string | null, changes: TurnPlan = {}): Mutable<Turn> {
    const { plans, turnMs, random } = this.rules;
    const plan = plans[Math.min(this.allTurns.length, plans.length - 1)] ?? {};
    // The duration varies by up to a fifth, so that the turns of many jobs do not end at the same time.
    const untilRead = plan.reads !== undefined;
    const durationMs = untilRead ? null : Math.round(turnMs * (0.8 + 0.4 * random()));
    const number = prompt === null ? 0 : 1 + this.allTurns.filter((turn) => turn.prompt !== null).length;
    const { takeUpMs = 0, ...planned } = { durationMs, ...plan, ...changes };
    const takenUpAt = this.rules.now() + (prompt === null ? 0 : takeUpMs);
    const initialState = {
      number,
      prompt,
      takenUpAt,
      startedAt: null,
      endedAt: null,
      state: 'queued',
    } as const;
    const turn: Mutable<Turn> = { ...planned, ...initialState };
    this.allTurns.push(turn);
    return turn;
  }

  private running(): Mutable<Turn> | undefined {
    return this.allTurns.find(({ state }) => state === 'running');
  }

  private startTurn(turn: Mutable<Turn>, at: number): void {
    turn.state = 'running';
    turn.startedAt = at;
    this.archivedAt = null;
    this.earlierReads = this.reads;
    this.recordChange(at);
  }

  private interrupt(at: number, except?: Turn): void {
    for (const turn of this.allTurns) {
      if (turn === except || !isOpen(turn) || turn.takenUpAt > at) continue;
      turn.state = 'interrupted';
      turn.endedAt = at;
    }
  }

  private catchUp(): void {
    const now = this.rules.now();
    for (;;) {
      const running = this.running();
      const endsAt =
        running === undefined ? Infinity : (running.startedAt ?? 0) + (running.durationMs ?? Infinity);
      const next = this.nextTurnToStart();
      if (Math.min(endsAt, next?.at ?? Infinity) > now) return;
      if (running !== undefined && endsAt <= (next?.at ?? Infinity)) this.finish(running, endsAt);
      else if (next !== undefined) {
        if (this.rules.whileActive === 'interrupt') this.interrupt(next.at, next.turn);
        this.startTurn(next.turn, next.at);
      }
    }
  }

  /** Returns the next turn and the time of its start. Undefined if no turn can start. */
  private nextTurnToStart(): { readonly turn: Mutable<Turn>; readonly at: number } | undefined {
    const [turn] = this.allTurns
      .filter(({ state }) => state === 'queued')
      .sort((one, other) => one.takenUpAt - other.takenUpAt);
    if (turn === undefined) return undefined;
    const { takenUpAt } = turn;
    if (this.rules.whileActive === 'interrupt') return { turn, at: takenUpAt };
    if (this.running() !== undefined) return undefined;
    // The turn waited for the end of another turn, which has ended since.
    return { turn, at: Math.max(this.terminal.at, takenUpAt) };
  }

  private finish(turn: Mutable<Turn>, at: number): void {
    turn.state = 'ended';
    turn.endedAt = at;
    const { outcome = 'pull-request' } = turn;
    const opens = outcome === 'new-pull-request' || (outcome === 'pull-request' && this.prLink === null);
    if (opens) this.prLink = this.rules.openPullRequest();
    this.terminal = { status: outcome === 'failed' ? 'failed' : 'completed', at, reads: this.reads };
    this.recordChange(at);
  }

  /** Records a state of the job. Every change calls this method, so that a read can return an earlier state. */
  private recordChange(at: number): void {
    this.jobHistory.push({ at, job: this.current() });
    if (this.jobHistory.length > MAX_CHANGES) this.jobHistory.shift();
  }
}

function isOpen({ state }: Turn): boolean {
  return state === 'queued' || state === 'running';
}
