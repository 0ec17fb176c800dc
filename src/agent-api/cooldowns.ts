import type { RequestFailure } from '../contract/request-failure';
import { limitRetryAfter, type Random } from '../follow-up/cadence';

/** The reason why a POST is not made: its project has a cool-down. */
export type PostCooldown = RequestFailure & {
  /** The rest of the cool-down and a random share of its length, so that the waiting follow-ups do not all send at once. */
  readonly retryAfterMs: number;
};

const COOLDOWN_LABEL = 'cooling_down';

/**
 * The length of the first cool-down if the response has no `Retry-After`. Each further cool-down in a row is twice as long, up to
 * `MAX_BACKOFF_MS`.
 */
const FIRST_COOLDOWN_MS = 5_000;
const MAX_BACKOFF_MS = 5 * 60_000;

/** After a cool-down, the waiting follow-ups send again within this share of the cool-down's length. */
const JITTER_FRACTION = 0.1;

/** The maximum number of cool-downs. If there are more, the oldest one is removed, and the next 429 of its project starts a new one. */
const MAX_COOLDOWNS = 1_000;

interface Cooldown {
  readonly until: number;
  readonly lengthMs: number;
  /** The number of cool-downs in a row without a `Retry-After`. */
  readonly backoffs: number;
}

const NO_COOLDOWN: Cooldown = { until: 0, lengthMs: 0, backoffs: 0 };

/**
 * Records the projects whose POSTs are paused in this process. The agent service limits requests per project, so a 429 for one
 * follow-up pauses the POSTs of all follow-ups of the project. Reads neither start nor obey a cool-down, because a 429 for a POST
 * does not show that reads are limited.
 */
export class Cooldowns {
  private readonly cooldowns = new Map<string, Cooldown>();

  constructor(
    /** Returns the milliseconds of a monotonic clock, because a wall clock that is set back would extend a cool-down by hours. */
    private readonly now: () => number = () => performance.now(),
    private readonly random: Random = Math.random,
  ) {}

  /** Records the response to a POST. @param startsCooldown whether a rate limit prevented that the message was processed */
  recordResponse(projectId: string, startsCooldown: boolean, retryAfterMs: number | undefined): void {
    const now = this.now();
    const previous = this.cooldowns.get(projectId) ?? NO_COOLDOWN;
    // During a cool-down, a response belongs to an earlier POST. Only a `Retry-After` that ends later extends the cool-down.
    const isCoolingDown = previous.until > now;
    if (!startsCooldown) {
      if (!isCoolingDown) this.cooldowns.delete(projectId);
      return;
    }
    if (isCoolingDown && retryAfterMs === undefined) return;
    const backoffs = retryAfterMs === undefined ? previous.backoffs + 1 : 0;
    const backoffMs = Math.min(MAX_BACKOFF_MS, FIRST_COOLDOWN_MS * 2 ** Math.min(backoffs - 1, 10));
    const lengthMs = retryAfterMs === undefined ? backoffMs : limitRetryAfter(retryAfterMs);
    const until = now + lengthMs;
    if (isCoolingDown && until <= previous.until) return;
    this.cooldowns.delete(projectId);
    this.cooldowns.set(projectId, { until, lengthMs, backoffs });
    const [oldest = ''] = this.cooldowns.keys();
    if (this.cooldowns.size > MAX_COOLDOWNS) this.cooldowns.delete(oldest);
  }

  /** Returns the project's cool-down, or null if the project's POSTs are not paused. */
  find(projectId: string): PostCooldown | null {
    const { until, lengthMs, backoffs } = this.cooldowns.get(projectId) ?? NO_COOLDOWN;
    const waitMs = until - this.now();
    if (waitMs <= 0) return null;
    const untilText = new Date(Date.now() + waitMs).toISOString().replace(/\.\d+/, '');
    const reason =
      backoffs === 0
        ? 'the agent service requested this wait with Retry-After'
        : `the agent service did not process a POST because of its rate limit (cool-down ${backoffs} in a row)`;
    return {
      label: COOLDOWN_LABEL,
      message: `the project's POSTs are paused until ${untilText}, because ${reason}`,
      retryAfterMs: Math.ceil(waitMs + JITTER_FRACTION * lengthMs * this.random()),
    };
  }
}
