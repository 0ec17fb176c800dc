import { CONCURRENCY, type Tolerance } from '../../contract/batch';
import { type DurationText, formatDuration, parseDuration } from '../../contract/duration';
import { parseInstant } from './instant';
import { type Overlap, overlapProblem } from './overlap';
import { ruleOf, textProblem, type Timing } from './timing';
import { parseTimezone } from './timezone';

/** When a schedule fires, and how each of its batches runs. What is left out has the default, or stays as it is. */
export interface ScheduleOptions {
  /** Cron expressions of 5 to 7 fields. With `calendars` and `every`, it fires at the times of all of them. */
  readonly cron?: readonly string[];
  /** Calendars of Temporal, each as `dayOfWeek=MON-FRI hour=3 minute=30`. */
  readonly calendars?: readonly string[];
  /** Intervals of a second or more, counted from 1970-01-01T00:00Z. */
  readonly every?: readonly DurationText[];
  /** How much later than its multiple each interval fires. @default '0s' */
  readonly offset?: DurationText;
  /** An IANA name, for cron and calendars. @default 'UTC' */
  readonly timezone?: string;
  /** ISO 8601 with a zone; null for at once. @default null */
  readonly startAt?: string | null;
  /** ISO 8601 with a zone; null for never. @default null */
  readonly endAt?: string | null;
  /** Each firing is late by a random time up to this. @default '0s' */
  readonly jitter?: DurationText;
  /** What becomes of a firing while the batch before still runs. @default 'skip' */
  readonly overlap?: Overlap;
  /**
   * A firing that the server could not make in time is made up for if it is late by no more than this, 10 s at least.
   *
   * @default '10m': a restart loses no firing, and what an outage has kept back is not sent in the middle of the day
   */
  readonly catchupWindow?: DurationText;
  /** Pauses the schedule when a batch fails, which it does beyond its tolerance. @default false */
  readonly pauseOnFailure?: boolean;
  /** Of each batch: open follow-ups at a time, 1 to 1,000. @default 50 */
  readonly concurrency?: number;
  /** Of each batch: beyond so many failures no further item is started. @default null, which is any number */
  readonly tolerate?: Tolerance;
  /** Where its batches run. @default the client's */
  readonly taskQueue?: string;
}

/** The options of a schedule, checked and complete. */
export interface ScheduleSettings {
  readonly timing: readonly Timing[];
  readonly timezone: string;
  /** ISO 8601, UTC. */
  readonly startAt: string | null;
  readonly endAt: string | null;
  readonly jitterMs: number;
  readonly overlap: Overlap;
  readonly catchupWindowMs: number;
  readonly pauseOnFailure: boolean;
  readonly concurrency: number;
  readonly tolerate: Tolerance;
  readonly taskQueue: string;
}

/** The server takes no shorter interval, and rounds to seconds. */
const MIN_INTERVAL_MS = 1_000;

/** The server raises a shorter window to this one without a word (measured, server 1.31.2). */
const MIN_CATCHUP_MS = 10_000;

export function defaultSettings(taskQueue: string): ScheduleSettings {
  return {
    timing: [],
    timezone: 'UTC',
    startAt: null,
    endAt: null,
    jitterMs: 0,
    overlap: 'skip',
    catchupWindowMs: 600_000,
    pauseOnFailure: false,
    concurrency: CONCURRENCY.default,
    tolerate: null,
    taskQueue,
  };
}

/** Checks options on top of the settings that hold without them. Timing is replaced as a whole. */
export function checkSettings(
  options: ScheduleOptions,
  base: ScheduleSettings,
): { readonly settings: ScheduleSettings; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const duration = (field: string, text: string | undefined, fallback: number, minimumMs = 0): number => {
    if (text === undefined) return fallback;
    const parsed = parseDuration(text);
    const problem =
      'problem' in parsed
        ? parsed.problem
        : parsed.ms < minimumMs
          ? `must be at least ${formatDuration(minimumMs)}; it is ${JSON.stringify(text)}`
          : undefined;
    if (problem !== undefined) problems.push(`${field}: ${problem}`);
    return 'ms' in parsed ? parsed.ms : fallback;
  };
  const instant = (field: string, text: string | null | undefined, fallback: string | null) => {
    if (text === undefined || text === null) return text === null ? null : fallback;
    const parsed = parseInstant(text);
    if ('problem' in parsed) problems.push(`${field}: ${parsed.problem}`);
    return 'at' in parsed ? parsed.at.toISOString() : fallback;
  };
  const overlap = options.overlap ?? base.overlap;
  const badOverlap = overlapProblem(overlap);
  if (badOverlap !== undefined) problems.push(`overlap: ${badOverlap}`);
  const timezone = options.timezone === undefined ? base.timezone : parseTimezone(options.timezone);
  if (typeof timezone === 'object') problems.push(`timezone: ${timezone.problem}`);
  const concurrency = options.concurrency ?? base.concurrency;
  const { minimum, maximum } = CONCURRENCY;
  if (!Number.isInteger(concurrency) || concurrency < minimum || concurrency > maximum)
    problems.push(`concurrency: must be a whole number from ${minimum} to ${maximum}`);
  const settings = {
    ...base,
    timing: checkTiming(options, base.timing, duration, problems),
    timezone: typeof timezone === 'string' ? timezone : base.timezone,
    startAt: instant('startAt', options.startAt, base.startAt),
    endAt: instant('endAt', options.endAt, base.endAt),
    jitterMs: duration('jitter', options.jitter, base.jitterMs),
    overlap,
    catchupWindowMs: duration('catchupWindow', options.catchupWindow, base.catchupWindowMs, MIN_CATCHUP_MS),
    pauseOnFailure: options.pauseOnFailure ?? base.pauseOnFailure,
    concurrency,
    tolerate: options.tolerate === undefined ? base.tolerate : options.tolerate,
    taskQueue: options.taskQueue ?? base.taskQueue,
  };
  const { startAt, endAt } = settings;
  // The server does not watch batches that it starts in this way (measured, server 1.31.2).
  if (settings.pauseOnFailure && overlap === 'allow-all')
    problems.push('pauseOnFailure: has no effect with overlap allow-all; leave out one of the two');
  if (startAt !== null && endAt !== null && endAt <= startAt) problems.push('endAt: must be after startAt');
  return { settings, problems };
}

function checkTiming(
  { cron = [], calendars = [], every = [], offset }: ScheduleOptions,
  fallback: readonly Timing[],
  duration: (field: string, text: string | undefined, fallback: number, minimumMs?: number) => number,
  problems: string[],
): readonly Timing[] {
  const offsetMs = duration('offset', offset, 0);
  const texts = (kind: 'cron' | 'calendar', given: readonly string[]): Timing[] =>
    given.map((text) => {
      const problem = textProblem(kind, text);
      if (problem !== undefined) problems.push(`${kind}: ${problem}`);
      return ruleOf(kind, text);
    });
  const intervals = every.map((text): Timing => {
    const everyMs = duration('every', text, MIN_INTERVAL_MS, MIN_INTERVAL_MS);
    if (everyMs > MIN_INTERVAL_MS && everyMs % 1_000 !== 0)
      problems.push(`every: must be whole seconds; it is ${JSON.stringify(text)}`);
    if (offsetMs >= everyMs) problems.push(`offset: must be shorter than the interval of ${text}`);
    return { kind: 'every', everyMs, offsetMs };
  });
  if (offset !== undefined && every.length === 0)
    problems.push('offset: belongs to an interval; give every too');
  if (offsetMs % 1_000 !== 0) problems.push('offset: must be whole seconds');
  const timing = [...texts('cron', cron), ...texts('calendar', calendars), ...intervals];
  if (timing.length === 0 && fallback.length === 0)
    problems.push('timing: is missing; give cron, calendar or every, one or more of them');
  return timing.length === 0 ? fallback : timing;
}
