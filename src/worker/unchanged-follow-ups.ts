import type { Phase } from '../contract/result';

/** An open run of a follow-up, as the visibility list shows it. */
export interface OpenRun {
  readonly workflowId: string;
  readonly runId: string;
  /** When the run started, after its start delay, in milliseconds since the epoch. */
  readonly startedAt: number;
  readonly jobStatus: string | null;
}

/** The open follow-ups of a namespace. */
export interface OpenFollowUps {
  /** Lists the runs in a phase that started at `until` or earlier. If more than `limit` runs match, any of them are listed. */
  list(phase: Phase, until: number, limit: number): Promise<readonly OpenRun[]>;
  /** Returns when the run last got a new phase or job status, in milliseconds since the epoch. Null if the run no longer exists. */
  readLastChange(run: OpenRun): Promise<number | null>;
}

/**
 * If a phase has up to 50 follow-ups, all are examined. If a phase has more, perhaps many thousands, the first 25 to 50 are
 * examined. If more than 50 started within one second, any of them are examined.
 */
const [MIN_EXAMINED, MAX_EXAMINED] = [25, 50];

/** The binary search for the follow-ups that started first goes back to this age. Older follow-ups are found too. */
const SEARCH_RANGE_MS = 366 * 24 * 3_600_000;
/** The search ends at this precision, because many follow-ups can start at the same time. */
const SEARCH_PRECISION_MS = 1_000;

/**
 * Finds the open follow-up of each phase that has not changed for the longest time.
 *
 * Neither a search attribute nor a visibility list has the time of the last change, and only the history shows it. The history of
 * each open follow-up would be too much to read, so only the first {@link MIN_EXAMINED} to {@link MAX_EXAMINED} follow-ups of a
 * phase are examined. The history of one of them is read again only after the visibility list shows another phase or job status.
 * A follow-up that changes and changes back between two measurements therefore counts as unchanged.
 */
export class UnchangedFollowUps {
  /** For each phase, the time of the last change of each examined run. The key of the inner map is from `keyOf`. */
  private readonly changes = new Map<Phase, Map<string, number>>();
  /** The time that the previous search found for a phase. The next search begins with this time. */
  private readonly searchStarts = new Map<Phase, number>();

  constructor(private readonly followUps: OpenFollowUps) {}

  /**
   * Returns the earliest last change among the open follow-ups of a phase; null for a phase without open follow-ups. Times are in
   * milliseconds since the epoch. If a request fails, the next call does not repeat the reads before it.
   */
  async findEarliestLastChange(phase: Phase, now: number): Promise<number | null> {
    const known = this.changes.get(phase) ?? new Map<string, number>();
    this.changes.set(phase, known);
    const runs = await this.listFirst(phase, now);
    const keys = new Set(runs.map(keyOf));
    for (const key of known.keys()) if (!keys.has(key)) known.delete(key);
    let oldest: number | null = null;
    for (const run of runs) {
      // A run can't have changed before it started.
      if (oldest !== null && run.startedAt >= oldest) break;
      const changedAt = known.get(keyOf(run)) ?? (await this.followUps.readLastChange(run));
      if (changedAt === null) continue;
      known.set(keyOf(run), changedAt);
      oldest = Math.min(oldest ?? changedAt, changedAt);
    }
    return oldest;
  }

  /**
   * Lists the runs of a phase that started first, the earliest start first. A visibility list begins with the latest start and
   * has no other order, so a binary search finds a time before which a suitable number of runs started.
   */
  private async listFirst(phase: Phase, now: number): Promise<OpenRun[]> {
    let [earliest, latest] = [now - SEARCH_RANGE_MS, now];
    let [few, many]: [few: readonly OpenRun[], many: readonly OpenRun[]] = [[], []];
    let until = Math.min(now, this.searchStarts.get(phase) ?? now);
    for (;;) {
      const runs = await this.followUps.list(phase, until, MAX_EXAMINED + 1);
      const isSuitable = runs.length <= MAX_EXAMINED && (runs.length >= MIN_EXAMINED || until === now);
      if (runs.length > MAX_EXAMINED) [latest, many] = [until, runs];
      else [earliest, few] = [until, runs];
      const isFound = isSuitable || (many.length > 0 && latest - earliest < SEARCH_PRECISION_MS);
      if (isFound) {
        // A list without an earlier limit has every run, so the next search needs no limit either.
        if (until === now) this.searchStarts.delete(phase);
        else this.searchStarts.set(phase, isSuitable ? until : latest);
        return [...few, ...(isSuitable ? [] : many)].sort((one, other) => one.startedAt - other.startedAt);
      }
      until = many.length === 0 ? now : Math.floor((earliest + latest) / 2);
    }
  }
}

function keyOf({ runId, jobStatus }: OpenRun): string {
  return `${runId} ${jobStatus}`;
}
