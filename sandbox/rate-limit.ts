const HOUR_MS = 3_600_000;

/** So many messages per project in any hour; each project has its own count. */
export class RateLimit {
  private readonly taken = new Map<string, number[]>();

  /** `perHour` null: no limit. `now` in epoch milliseconds. */
  constructor(
    private readonly perHour: number | null,
    private readonly now: () => number,
  ) {}

  /** Counts one message, or says after how many whole seconds the next one will be counted. */
  take(projectId: string): { readonly retryAfterSeconds: number } | undefined {
    if (this.perHour === null) return undefined;
    const now = this.now();
    const recent = (this.taken.get(projectId) ?? []).filter((at) => at > now - HOUR_MS);
    const oldest = recent[0] ?? now;
    const full = recent.length >= this.perHour;
    if (!full) recent.push(now);
    this.taken.set(projectId, recent);
    return full ? { retryAfterSeconds: Math.max(1, Math.ceil((oldest + HOUR_MS - now) / 1_000)) } : undefined;
  }
}
