import type { Random } from './random';

/** How a turn of the agent ends. */
export const OUTCOMES = ['pull-request', 'new-pull-request', 'no-change', 'failed'] as const;

/**
 * - `pull-request`: opens one, or adds a commit to the job's own where it has one, so that the link stays the same
 * - `new-pull-request`: opens one in any case, so that the link changes
 * - `no-change`: no file was changed; the link stays what it was, null where there is none
 * - `failed`: the agent hit an unrecoverable error
 */
export type Outcome = (typeof OUTCOMES)[number];

/** What a turn will do. */
export interface TurnPlan {
  /** @default 'pull-request' */
  readonly outcome?: Outcome;
  /**
   * Milliseconds from start to end; null for a turn that ends only when the test says so.
   *
   * @default the sandbox's `turnMs`, varied by up to a fifth
   */
  readonly durationMs?: number | null;
  /**
   * The turn ends with the answer to the so-many-th read since it began, whatever time that takes; null for a turn
   * that doesn't count its reads. From 1; by itself it stands for a turn without a duration.
   *
   * @default null
   */
  readonly reads?: number | null;
}

/** One turn of a job; times in epoch milliseconds. */
export interface Turn {
  /** Messages are numbered from 1 per job; 0 is a turn that no message started. */
  readonly number: number;
  readonly prompt: string | null;
  readonly outcome: Outcome;
  readonly durationMs: number | null;
  readonly reads: number | null;
  readonly receivedAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** `interrupted` by a later message, or by a status that was set by hand. */
  readonly state: 'queued' | 'running' | 'ended' | 'interrupted';
}

/** The plans of a job's turns in order; the last one repeats. */
export class TurnPlans {
  private next = 0;

  constructor(
    private readonly plans: readonly TurnPlan[],
    private readonly turnMs: number,
    private readonly random: Random,
  ) {}

  take(): Required<TurnPlan> {
    const plan = this.plans[Math.min(this.next, this.plans.length - 1)] ?? {};
    this.next += 1;
    const { outcome = 'pull-request', durationMs, reads = null } = plan;
    if (durationMs !== undefined) return { outcome, durationMs, reads };
    return { outcome, durationMs: reads === null ? this.variedDuration() : null, reads };
  }

  /** A fifth up or down: enough that the turns of many jobs don't end in step. */
  private variedDuration(): number {
    return Math.round(this.turnMs * (0.8 + 0.4 * this.random()));
  }
}
