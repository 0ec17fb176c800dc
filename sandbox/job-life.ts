import type { AgentJob, TerminalStatus } from '../src/core/job';
import type { PullRequests } from './pull-requests';
import type { Turn, TurnPlan, TurnPlans } from './turn';

/** What happens to a message that reaches an `active` job; the message is processed either way. */
export const WHILE_ACTIVE = ['interrupt', 'queue'] as const;
export type WhileActive = (typeof WHILE_ACTIVE)[number];

export interface LifeRules {
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly pullRequests: PullRequests;
  readonly plans: TurnPlans;
  /** True: an `active` job shows the link of an earlier turn; false: null while active, as the specification says. */
  readonly linkWhileActive: boolean;
  readonly whileActive: WhileActive;
  /** Milliseconds for which the earlier turn's terminal status shows before a queued message starts. */
  readonly queueGapMs: number;
}

/** What a job is when its life begins, or is changed to by hand. */
export interface JobStart extends Omit<AgentJob, 'status'> {
  readonly status: 'active' | TerminalStatus;
}

export type JobChange = Partial<Pick<JobStart, 'status' | 'prLink' | 'archivedAt'>>;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * The life of one job as a state machine without timers: whatever was due is applied when somebody looks, in the order
 * in which it was due. The same calls at the same times give the same life.
 */
export class JobLife {
  private readonly history: Mutable<Turn>[] = [];
  private readonly queue: Mutable<Turn>[] = [];
  private running: Mutable<Turn> | undefined;
  private status: TerminalStatus;
  private prLink: string | null;
  private archivedAt: string | null;
  private statusSince: number;
  private nextStartAt = 0;
  /** Of the running turn. */
  private readsAnswered = 0;
  private messages = 0;
  private last: { readonly before: AgentJob; readonly at: number } | undefined;

  constructor(
    private readonly start: JobStart,
    private readonly rules: LifeRules,
  ) {
    this.status = start.status === 'active' ? 'completed' : start.status;
    this.prLink = start.prLink;
    this.archivedAt = start.archivedAt;
    this.statusSince = rules.now();
    if (start.status === 'active') this.begin(this.newTurn(0, null, rules.plans.take()), rules.now());
  }

  /** The job as the service answers it now. */
  job(): AgentJob {
    this.catchUp();
    const active = this.running !== undefined;
    return {
      ...this.start,
      status: active ? 'active' : this.status,
      prLink: active && !this.rules.linkWhileActive ? null : this.prLink,
      archivedAt: this.archivedAt,
    };
  }

  /** The job as it answers a read, which may be the one that ends the turn. */
  read(): AgentJob {
    this.catchUp();
    this.readsAnswered += 1;
    const { running } = this;
    if (running?.reads === this.readsAnswered) this.finish(running, this.rules.now());
    return this.job();
  }

  turns(): readonly Turn[] {
    this.catchUp();
    return this.history.map((turn) => ({ ...turn }));
  }

  /** Since when the job has its terminal status, in epoch milliseconds; null while it is active. */
  settledSince(): number | null {
    this.catchUp();
    return this.running === undefined ? this.statusSince : null;
  }

  /** The job as it was just before the last message, and when that came; undefined before the first message. */
  beforeLastMessage(): { readonly before: AgentJob; readonly at: number } | undefined {
    return this.last;
  }

  /** Processes a message: every call is one more turn. `plan` replaces parts of the turn that was planned. */
  receive(prompt: string, plan: TurnPlan = {}): Turn {
    const now = this.rules.now();
    this.last = { before: this.job(), at: now };
    this.messages += 1;
    const turn = this.newTurn(this.messages, prompt, { ...this.rules.plans.take(), ...plan });
    const mustWait = this.running !== undefined || this.queue.length > 0;
    if (mustWait && this.rules.whileActive === 'queue') {
      this.queue.push(turn);
    } else {
      this.interrupt(now);
      this.begin(turn, now);
    }
    this.catchUp();
    return { ...turn };
  }

  /** Changes the job by hand. A status ends the running turn and drops what is queued; `active` starts a turn. */
  change(change: JobChange): void {
    const now = this.rules.now();
    this.catchUp();
    if (change.status !== undefined) {
      this.interrupt(now);
      this.archivedAt =
        change.status === 'archived' ? (this.archivedAt ?? new Date(now).toISOString()) : null;
      if (change.status === 'active') this.begin(this.newTurn(0, null, this.rules.plans.take()), now);
      else this.settle(change.status, now);
    }
    if (change.prLink !== undefined) this.prLink = change.prLink;
    if (change.archivedAt !== undefined) this.archivedAt = change.archivedAt;
  }

  private newTurn(number: number, prompt: string | null, plan: Required<TurnPlan>): Mutable<Turn> {
    const times = { receivedAt: this.rules.now(), startedAt: null, endedAt: null };
    const turn: Mutable<Turn> = { number, prompt, ...plan, ...times, state: 'queued' };
    this.history.push(turn);
    return turn;
  }

  private begin(turn: Mutable<Turn>, at: number): void {
    turn.state = 'running';
    turn.startedAt = at;
    this.archivedAt = null;
    this.readsAnswered = 0;
    this.running = turn;
  }

  private interrupt(at: number): void {
    for (const turn of this.running === undefined ? this.queue : [this.running, ...this.queue]) {
      turn.state = 'interrupted';
      turn.endedAt = at;
    }
    this.running = undefined;
    this.queue.length = 0;
  }

  private catchUp(): void {
    const now = this.rules.now();
    for (;;) {
      const due = this.running === undefined ? this.nextStartAt : endOf(this.running);
      if (due > now) return;
      if (this.running !== undefined) {
        this.finish(this.running, due);
        continue;
      }
      const next = this.queue.shift();
      if (next === undefined) return;
      this.begin(next, due);
    }
  }

  private finish(turn: Mutable<Turn>, at: number): void {
    turn.state = 'ended';
    turn.endedAt = at;
    this.running = undefined;
    this.nextStartAt = at + this.rules.queueGapMs;
    if (turn.outcome === 'pull-request' || turn.outcome === 'new-pull-request') this.publish(turn, at);
    this.settle(turn.outcome === 'failed' ? 'failed' : 'completed', at);
  }

  private settle(status: TerminalStatus, at: number): void {
    this.status = status;
    this.statusSince = at;
  }

  private publish(turn: Turn, at: number): void {
    const { pullRequests } = this.rules;
    const commit = { jobId: this.start.id, prompt: turn.prompt, at };
    if (this.prLink !== null && turn.outcome === 'pull-request') {
      pullRequests.push(this.prLink, commit);
    } else {
      const branch = `agent/${this.start.id}`;
      this.prLink = pullRequests.open(this.start.source.repository ?? 'unknown/unknown', branch, commit);
    }
  }
}

function endOf(turn: Turn): number {
  return turn.startedAt === null || turn.durationMs === null ? Infinity : turn.startedAt + turn.durationMs;
}
