import { boundedRetryAfter, type Random } from '../core/cadence';
import type { NoAnswer } from './exchange';
import type { Operation } from './trouble';

/** The label where nothing was asked. */
export const COOLING_DOWN = 'cooling down';

/** Of a 429 that names no time: from here it doubles with each refusal in a row, up to five minutes. */
const FIRST_MS = 5_000;
const MAX_UNNAMED_MS = 5 * 60_000;

/** Those who waited come back within this share of the wait, and not all at its end. */
const SPREAD = 0.1;

/** Beyond so many the oldest is forgotten, and learnt again by one refusal. */
const MAX_COOLDOWNS = 1_000;

interface Cooldown {
  readonly until: number;
  readonly lengthMs: number;
  /** Refusals in a row that named no time. */
  readonly unnamed: number;
}

const NONE: Cooldown = { until: 0, lengthMs: 0, unnamed: 0 };

/**
 * Until when the service wants no request for a project: it limits projects, so a refusal of one follow-up holds for all. A
 * refused send says nothing of reads; a refused read holds both, because a service that is too busy to be read is too busy for
 * a message.
 */
export class Cooldowns {
  private readonly cooldowns = new Map<string, Cooldown>();

  constructor(
    /** Milliseconds of a clock that nobody sets: a wall clock that goes back would close a project for hours. */
    private readonly now: () => number = () => performance.now(),
    private readonly random: Random = Math.random,
  ) {}

  /** A 429 closes the project, and so does a 503 that names a time. */
  heard(operation: Operation, projectId: string, status: number, retryAfterMs: number | undefined): void {
    const now = this.now();
    const key = `${operation} ${projectId}`;
    const before = this.cooldowns.get(key) ?? NONE;
    // An answer to a request from before the cool-down says nothing new, unless it names a later time.
    const cooling = before.until > now;
    if (status !== 429 && !(status === 503 && retryAfterMs !== undefined)) {
      if (!cooling) this.cooldowns.delete(key);
      return;
    }
    if (cooling && retryAfterMs === undefined) return;
    const unnamed = retryAfterMs === undefined ? before.unnamed + 1 : 0;
    const unnamedMs = Math.min(MAX_UNNAMED_MS, FIRST_MS * 2 ** Math.min(unnamed - 1, 10));
    const lengthMs = retryAfterMs === undefined ? unnamedMs : boundedRetryAfter(retryAfterMs);
    const until = now + lengthMs;
    if (cooling && until <= before.until) return;
    this.cooldowns.delete(key);
    this.cooldowns.set(key, { until, lengthMs, unnamed });
    const [oldest = ''] = this.cooldowns.keys();
    if (this.cooldowns.size > MAX_COOLDOWNS) this.cooldowns.delete(oldest);
  }

  of(operation: Operation, projectId: string): NoAnswer['brokenBy'] | null {
    const ofReads = this.cooldowns.get(`read ${projectId}`) ?? NONE;
    const ofSends = operation === 'send' ? this.cooldowns.get(`send ${projectId}`) : undefined;
    const { until, lengthMs, unnamed } = ofSends && ofSends.until > ofReads.until ? ofSends : ofReads;
    const waitMs = until - this.now();
    if (waitMs <= 0) return null;
    const untilText = new Date(Date.now() + waitMs).toISOString().replace(/\.\d+/, '');
    const why = unnamed === 0 ? 'as the service asked' : `after ${unnamed} refusals (429) in a row`;
    return {
      label: COOLING_DOWN,
      message: `project cooling down until ${untilText}, ${why}`,
      retryAfterMs: Math.ceil(waitMs + SPREAD * lengthMs * this.random()),
    };
  }
}
