import type { AgentJob, TerminalStatus } from '../src/contract/job';
import type { Random } from './random';

/** What a turn will do. */
export interface TurnPlan {
  /**
   * - `pull-request`: opens one where the job has none, else the link stays the same
   * - `new-pull-request`: opens one in any case, so that the link changes
   * - `no-change`: no file was changed; the link stays what it was
   * - `failed`: the agent hit an unrecoverable error
   *
   * @default 'pull-request'
   */
  readonly outcome?: 'pull-request' | 'new-pull-request' | 'no-change' | 'failed';
  /**
   * Milliseconds from start to end; null for a turn that ends only when the test says so.
   *
   * @default the sandbox's `turnMs`, varied by up to a fifth
   */
  readonly durationMs?: number | null;
  /** The turn ends with the answer to this read since it began, counted from 1, whatever time that takes. */
  readonly reads?: number;
  /**
   * Milliseconds from a message to its take-up, until which the job goes on as if there were none.
   *
   * @default 0
   */
  readonly takeUpMs?: number;
}

/** One turn of a job; times in epoch milliseconds. */
export interface Turn extends TurnPlan {
  /** Messages are numbered from 1 per job; 0 is a turn that no message started. */
  readonly number: number;
  readonly prompt: string | null;
  /** From then on it interrupts other turns, or waits for their end. */
  readonly takenUpAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** `interrupted` by a later message, or by a status that was set by hand. */
  readonly state: 'queued' | 'running' | 'ended' | 'interrupted';
}

/** What a job is when its life begins, or is changed to by hand. */
export interface JobStart extends Omit<AgentJob, 'status'> {
  readonly status: 'active' | TerminalStatus;
}

export type JobChange = Partial<Pick<JobStart, 'status' | 'prLink'>>;

/** The job from a moment on, in epoch milliseconds. */
export interface PastJob {
  readonly at: number;
  readonly job: AgentJob;
}

/** A moment of a job's life, by both of its measures. */
interface Since {
  /** Epoch milliseconds. */
  readonly at: number;
  /** How many reads were answered before. */
  readonly reads: number;
}

export interface LifeRules {
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly random: Random;
  /** Of a turn without a duration of its own. */
  readonly turnMs: number;
  /** In order; the last one repeats. */
  readonly plans: readonly TurnPlan[];
  /** What happens to a message that reaches an `active` job; it is processed either way. */
  readonly whileActive: 'interrupt' | 'queue';
  /** @returns the link of a new pull request */
  readonly openPullRequest: () => string;
}

/** Changes, and reads, that are kept of a job: more than any lag looks back, and a bound on the memory of a job that lives long. */
const MAX_CHANGES = 200;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * The life of one job as a state machine without timers: whatever was due is applied when somebody looks, in the order
 * in which it was due. The same calls at the same times give the same life.
 */
export class JobLife {
  /** The job just before the last message, and when that came; undefined before the first message. */
  beforeLastMessage: (Since & { readonly job: AgentJob }) | undefined;
  /** How many reads were answered, the one that is being answered among them. */
  reads = 0;
  private readonly allTurns: Mutable<Turn>[] = [];
  /** From the oldest on, at least one. */
  private readonly jobHistory: PastJob[] = [];
  /** What each read found, the last one at the end. */
  private readonly readResults: PastJob[] = [];
  private terminal: Since & { readonly status: TerminalStatus };
  private prLink: string | null;
  private archivedAt: string | null;
  /** Before the running turn began. */
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

  /** The job as the service answers it now. */
  job(): AgentJob {
    this.catchUp();
    return this.current();
  }

  /** The job as it was at a moment, or the oldest that is kept; undefined if it has not changed since. */
  jobAt(at: number): AgentJob | undefined {
    this.catchUp();
    const index = Math.max(
      0,
      this.jobHistory.findLastIndex((change) => change.at <= at),
    );
    return index === this.jobHistory.length - 1 ? undefined : this.jobHistory[index]?.job;
  }

  /** The job as a read found it so many reads before the last one; undefined if it has not changed since. */
  jobAtRead(before: number): AgentJob | undefined {
    const then = this.readResults.at(-1 - before) ?? this.jobHistory[0];
    return then === this.jobHistory.at(-1) ? undefined : then?.job;
  }

  /** What the job was, change by change; the oldest are forgotten. */
  changes(): readonly PastJob[] {
    this.catchUp();
    return [...this.jobHistory];
  }

  /** The link is null while it is active, as the specification says. */
  private current(): AgentJob {
    const active = this.running() !== undefined;
    return {
      ...this.start,
      status: active ? 'active' : this.terminal.status,
      prLink: active ? null : this.prLink,
      archivedAt: this.archivedAt,
    };
  }

  /** The job as it answers a read, which may be the one that ends the turn. */
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

  /** Since when the job has its terminal status, in epoch milliseconds; null while it is active. */
  terminalSince(): number | null {
    this.catchUp();
    return this.running() === undefined ? this.terminal.at : null;
  }

  /** How many reads were answered since then. */
  readsSinceTerminal(): number {
    return this.reads - this.terminal.reads;
  }

  /** Processes a message: every call is one more turn, whose number is returned. `plan` replaces parts of its plan. */
  receive(prompt: string, plan: TurnPlan = {}): number {
    const now = this.rules.now();
    this.beforeLastMessage = { job: this.job(), at: now, reads: this.reads };
    const { number } = this.newTurn(prompt, plan);
    this.catchUp();
    return number;
  }

  /**
   * Changes the job by hand. A status ends the running turn and drops what is queued, but not a message that was not
   * taken up yet; `active` starts a turn.
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
    // A fifth up or down: enough that the turns of many jobs don't end in step.
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

  /** The turn that begins before all others, and when; undefined while none can. */
  private nextTurnToStart(): { readonly turn: Mutable<Turn>; readonly at: number } | undefined {
    const [turn] = this.allTurns
      .filter(({ state }) => state === 'queued')
      .sort((one, other) => one.takenUpAt - other.takenUpAt);
    if (turn === undefined) return undefined;
    const { takenUpAt } = turn;
    if (this.rules.whileActive === 'interrupt') return { turn, at: takenUpAt };
    if (this.running() !== undefined) return undefined;
    // It waits for the end of a turn that has ended since.
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

  /** Whatever changes the job calls it, so that a read can look back. */
  private recordChange(at: number): void {
    this.jobHistory.push({ at, job: this.current() });
    if (this.jobHistory.length > MAX_CHANGES) this.jobHistory.shift();
  }
}

function isOpen({ state }: Turn): boolean {
  return state === 'queued' || state === 'running';
}
