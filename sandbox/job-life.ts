import type { AgentJob, TerminalStatus } from '../src/core/job';
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
}

/** One turn of a job; times in epoch milliseconds. */
export interface Turn extends TurnPlan {
  /** Messages are numbered from 1 per job; 0 is a turn that no message started. */
  readonly number: number;
  readonly prompt: string | null;
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
  /** Milliseconds for which the earlier turn's terminal status shows before a queued message starts. */
  readonly queueGapMs: number;
  /** @returns the link of a new pull request */
  readonly openPullRequest: () => string;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * The life of one job as a state machine without timers: whatever was due is applied when somebody looks, in the order
 * in which it was due. The same calls at the same times give the same life.
 */
export class JobLife {
  /** The job just before the last message, and when that came; undefined before the first message. */
  beforeLastMessage: { readonly job: AgentJob; readonly at: number } | undefined;
  private readonly all: Mutable<Turn>[] = [];
  private settled: { readonly status: TerminalStatus; readonly at: number };
  private prLink: string | null;
  private archivedAt: string | null;
  /** Of the running turn. */
  private readsAnswered = 0;

  constructor(
    private readonly start: JobStart,
    private readonly rules: LifeRules,
  ) {
    const at = rules.now();
    this.settled = { status: start.status === 'active' ? 'completed' : start.status, at };
    this.prLink = start.prLink;
    this.archivedAt = start.archivedAt;
    if (start.status === 'active') this.begin(this.newTurn(null), at);
  }

  /** The job as the service answers it now. The link is null while it is active, as the specification says. */
  job(): AgentJob {
    this.catchUp();
    const active = this.running() !== undefined;
    return {
      ...this.start,
      status: active ? 'active' : this.settled.status,
      prLink: active ? null : this.prLink,
      archivedAt: this.archivedAt,
    };
  }

  /** The job as it answers a read, which may be the one that ends the turn. */
  read(): AgentJob {
    this.catchUp();
    this.readsAnswered += 1;
    const running = this.running();
    if (running?.reads === this.readsAnswered) this.finish(running, this.rules.now());
    return this.job();
  }

  turns(): readonly Turn[] {
    this.catchUp();
    return this.all.map((turn) => ({ ...turn }));
  }

  /** Since when the job has its terminal status, in epoch milliseconds; null while it is active. */
  settledSince(): number | null {
    this.catchUp();
    return this.running() === undefined ? this.settled.at : null;
  }

  /** Processes a message: every call is one more turn, whose number is returned. `plan` replaces parts of its plan. */
  receive(prompt: string, plan: TurnPlan = {}): number {
    const now = this.rules.now();
    this.beforeLastMessage = { job: this.job(), at: now };
    const turn = this.newTurn(prompt, plan);
    const mustWait = this.all.some((other) => other !== turn && isOpen(other));
    if (!mustWait || this.rules.whileActive === 'interrupt') {
      this.interrupt(now, turn);
      this.begin(turn, now);
    }
    return turn.number;
  }

  /** Changes the job by hand. A status ends the running turn and drops what is queued; `active` starts a turn. */
  change({ status, prLink }: JobChange): void {
    const now = this.rules.now();
    this.catchUp();
    if (status !== undefined) {
      this.interrupt(now);
      this.archivedAt = status === 'archived' ? (this.archivedAt ?? new Date(now).toISOString()) : null;
      if (status === 'active') this.begin(this.newTurn(null), now);
      else this.settled = { status, at: now };
    }
    if (prLink !== undefined) this.prLink = prLink;
  }

  private newTurn(prompt: string | null, changes: TurnPlan = {}): Mutable<Turn> {
    const { plans, turnMs, random } = this.rules;
    const plan = plans[Math.min(this.all.length, plans.length - 1)] ?? {};
    // A fifth up or down: enough that the turns of many jobs don't end in step.
    const untilRead = plan.reads !== undefined;
    const durationMs = untilRead ? null : Math.round(turnMs * (0.8 + 0.4 * random()));
    const number = prompt === null ? 0 : 1 + this.all.filter((turn) => turn.prompt !== null).length;
    const unbegun = { number, prompt, startedAt: null, endedAt: null, state: 'queued' } as const;
    const turn: Mutable<Turn> = { durationMs, ...plan, ...changes, ...unbegun };
    this.all.push(turn);
    return turn;
  }

  private running(): Mutable<Turn> | undefined {
    return this.all.find(({ state }) => state === 'running');
  }

  private begin(turn: Mutable<Turn>, at: number): void {
    turn.state = 'running';
    turn.startedAt = at;
    this.archivedAt = null;
    this.readsAnswered = 0;
  }

  private interrupt(at: number, except?: Turn): void {
    for (const turn of this.all) {
      if (turn === except || !isOpen(turn)) continue;
      turn.state = 'interrupted';
      turn.endedAt = at;
    }
  }

  private catchUp(): void {
    const now = this.rules.now();
    for (;;) {
      const running = this.running();
      if (running !== undefined) {
        const due = (running.startedAt ?? 0) + (running.durationMs ?? Infinity);
        if (due > now) return;
        this.finish(running, due);
      } else {
        const next = this.all.find(({ state }) => state === 'queued');
        const due = this.settled.at + this.rules.queueGapMs;
        if (next === undefined || due > now) return;
        this.begin(next, due);
      }
    }
  }

  private finish(turn: Mutable<Turn>, at: number): void {
    turn.state = 'ended';
    turn.endedAt = at;
    const { outcome = 'pull-request' } = turn;
    const opens = outcome === 'new-pull-request' || (outcome === 'pull-request' && this.prLink === null);
    if (opens) this.prLink = this.rules.openPullRequest();
    this.settled = { status: outcome === 'failed' ? 'failed' : 'completed', at };
  }
}

function isOpen({ state }: Turn): boolean {
  return state === 'queued' || state === 'running';
}
