import type { ScheduleOverlapPolicy } from '@temporalio/client';
import {
  type ScheduleDescription as TemporalSchedule,
  type ScheduleSpec as TemporalSpec,
  type ScheduleSpecDescription,
} from '@temporalio/client';
import { CONCURRENCY, isTolerance, type Tolerance } from '../../core/batch';
import { MAX_ATTRIBUTE_CHARACTERS, quote } from '../../core/text';
import { type DurationText, formatDuration, parseDuration } from '../../core/units';
import { grpcError } from '../../temporal/grpc-status';
import { InvalidScheduleError } from '../errors';
import {
  checkTiming,
  temporalTiming,
  type Timing,
  type TimingOptions,
  timingsOf,
  timingText,
} from './timing';

/** What happens when a schedule is to fire while the batch of an earlier firing still runs, as Temporal names it. */
export const OVERLAPS = [
  'skip',
  'buffer-one',
  'buffer-all',
  'allow-all',
  'cancel-other',
  'terminate-other',
] as const;
export type Overlap = (typeof OVERLAPS)[number];

/** A text is an ISO 8601 date-time with an offset, such as `2026-11-21T03:00+01:00`. */
export type Time = Date | string;

/** When a schedule fires, and how each of its batches runs. What is left out has the default, or stays as it is. */
export interface ScheduleSpec extends TimingOptions {
  /** An IANA name, for cron and calendars. @default 'UTC' */
  readonly timezone?: string;
  /** Null for at once. @default null */
  readonly startAt?: Time | null;
  /** Null for never. @default null */
  readonly endAt?: Time | null;
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
  /** Shown in lists and in the Web UI; whoever pauses the schedule replaces it. At most 255 characters. */
  readonly note?: string;
}

/** A checked and complete {@link ScheduleSpec}. */
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

/** Checks a specification on top of the settings that hold without it. Timing is replaced as a whole. */
export function checkSpec(
  spec: ScheduleSpec,
  base: ScheduleSettings,
): { readonly settings: ScheduleSettings; readonly problems: string[] } {
  const problems: string[] = [];
  const duration = (field: string, text: string | undefined, fallback: number): number => {
    const parsed = text === undefined ? { ms: fallback } : parseDuration(text);
    if ('problem' in parsed) problems.push(`${field}: ${parsed.problem}`);
    return 'ms' in parsed ? parsed.ms : fallback;
  };
  const time = (field: string, at: Time | null | undefined, fallback: string | null): string | null => {
    if (at === undefined || at === null) return at === null ? null : fallback;
    return parseTime(field, at, problems)?.toISOString() ?? fallback;
  };
  const timing = checkTiming(spec, problems);
  const settings = {
    timing: timing.length === 0 ? base.timing : timing,
    timezone: spec.timezone ?? base.timezone,
    startAt: time('startAt', spec.startAt, base.startAt),
    endAt: time('endAt', spec.endAt, base.endAt),
    jitterMs: duration('jitter', spec.jitter, base.jitterMs),
    overlap: spec.overlap ?? base.overlap,
    catchupWindowMs: duration('catchupWindow', spec.catchupWindow, base.catchupWindowMs),
    pauseOnFailure: spec.pauseOnFailure ?? base.pauseOnFailure,
    concurrency: spec.concurrency ?? base.concurrency,
    tolerate: spec.tolerate === undefined ? base.tolerate : spec.tolerate,
    taskQueue: spec.taskQueue ?? base.taskQueue,
  };
  const { startAt, endAt, overlap, concurrency } = settings;
  if (settings.timing.length === 0)
    problems.push('timing: is missing; give cron, calendars or intervals, one or more of them');
  if (settings.timezone === '')
    problems.push('timezone: must not be empty; give a name such as Europe/Berlin');
  if (settings.catchupWindowMs < MIN_CATCHUP_MS)
    problems.push(
      `catchupWindow: must be at least ${MIN_CATCHUP_MS / 1_000}s; it is ${quote(spec.catchupWindow)}`,
    );
  if (
    !Number.isInteger(concurrency) ||
    concurrency < CONCURRENCY.minimum ||
    concurrency > CONCURRENCY.maximum
  )
    problems.push(
      `concurrency: must be a whole number from ${CONCURRENCY.minimum} to ${CONCURRENCY.maximum}`,
    );
  // The server does not watch batches that it starts in this way (measured, server 1.31.2).
  if (settings.pauseOnFailure && overlap === 'allow-all')
    problems.push('pauseOnFailure: has no effect with overlap allow-all; leave out one of the two');
  if (startAt !== null && endAt !== null && endAt <= startAt) problems.push('endAt: must be after startAt');
  problems.push(...overlapProblems(overlap), ...noteProblems(spec.note));
  return { settings, problems };
}

/** Without an offset it would be another time on each machine. */
const ISO_8601 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** @param problems takes what is wrong with it */
export function parseTime(field: string, time: Time, problems: string[]): Date | undefined {
  const at = new Date(typeof time === 'string' && !ISO_8601.test(time) ? NaN : time);
  if (!Number.isNaN(at.getTime()) && (typeof time !== 'string' || isDate(time.slice(0, 10)))) return at;
  problems.push(
    `${field}: ${quote(String(time))} is not an ISO 8601 date-time with an offset, for example "2026-11-21T03:00:00Z" or "2026-11-21T03:00+01:00"`,
  );
  return undefined;
}

/** JavaScript takes the 30th of February for the 2nd of March. */
function isDate(day: string): boolean {
  return new Date(`${day}T00:00Z`).toISOString().startsWith(day);
}

export function overlapProblems(overlap: string | undefined): string[] {
  if (overlap === undefined || OVERLAPS.some((known) => known === overlap)) return [];
  return [`overlap: must be one of ${OVERLAPS.join(', ')}; it is ${quote(overlap)}`];
}

export function noteProblems(note: string | undefined): string[] {
  const length = note?.length ?? 0;
  return length <= MAX_ATTRIBUTE_CHARACTERS
    ? []
    : [`note: must have at most ${MAX_ATTRIBUTE_CHARACTERS} characters; it has ${length}`];
}

/** @throws InvalidScheduleError unless there are no problems */
export function refuse(problems: readonly string[]): void {
  if (problems.length > 0) throw new InvalidScheduleError(problems);
}

/**
 * What the server refuses of a specification, with the name of the option; any other error as it is. The SDK makes a
 * TypeError of "Invalid schedule spec: …".
 */
export function inScheduleWords(error: unknown, { cron = [], calendars = [] }: TimingOptions): unknown {
  const refused = grpcError(error);
  const invalid = refused?.status === 'INVALID_ARGUMENT' ? refused.words : undefined;
  const words = error instanceof TypeError ? error.message : invalid;
  if (words === undefined) return error;
  const texts = [...(cron.length > 0 ? ['cron'] : []), ...(calendars.length > 0 ? ['calendar'] : [])];
  const option = /time ?zone/i.test(words)
    ? 'timezone'
    : /^interval/i.test(words)
      ? 'every'
      : /^phase/i.test(words)
        ? 'offset'
        : texts.join(', ');
  return new InvalidScheduleError([
    `${option === '' ? 'schedule' : option}: the server refuses it: ${words}`,
  ]);
}

/** The settings of a schedule that is there, whoever has changed it since; how its batches run is in `input`. */
export function settingsOf(
  { spec, policies, action }: TemporalSchedule,
  input: { readonly concurrency?: number; readonly tolerate?: Tolerance },
): ScheduleSettings {
  return {
    timing: timingsOf(spec),
    timezone: timezoneOf(spec),
    startAt: spec.startAt?.toISOString() ?? null,
    endAt: spec.endAt?.toISOString() ?? null,
    jitterMs: spec.jitter ?? 0,
    overlap: overlapOf(policies.overlap),
    catchupWindowMs: policies.catchupWindow,
    pauseOnFailure: policies.pauseOnFailure,
    concurrency: input.concurrency ?? CONCURRENCY.default,
    tolerate: input.tolerate ?? null,
    taskQueue: action.taskQueue,
  };
}

/** The time zone of a schedule that is there; the server leaves out what is empty. */
export function timezoneOf(spec: { readonly timezone?: string } | undefined): string {
  const { timezone = '' } = spec ?? {};
  return timezone === '' ? 'UTC' : timezone;
}

/** @param there the specification of the schedule that is changed: what it has and settings do not know is kept */
export function temporalSpec(settings: ScheduleSettings, there?: ScheduleSpecDescription): TemporalSpec {
  const { timing, timezone, startAt, endAt, jitterMs } = settings;
  const isKept = there !== undefined && wordsOf(timingsOf(there)) === wordsOf(timing);
  return {
    ...(isKept
      ? { calendars: there.calendars ?? [], intervals: there.intervals ?? [] }
      : temporalTiming(timing)),
    ...(there?.skip === undefined ? {} : { skip: there.skip }),
    timezone,
    // Without one the server adds up to a second.
    jitter: jitterMs,
    ...(startAt === null ? {} : { startAt: new Date(startAt) }),
    ...(endAt === null ? {} : { endAt: new Date(endAt) }),
  };
}

export function temporalPolicies({ overlap, catchupWindowMs, pauseOnFailure }: ScheduleSettings) {
  return { overlap: policyOf(overlap), catchupWindow: catchupWindowMs, pauseOnFailure };
}

/** `buffer-one` is Temporal's `BUFFER_ONE`. */
export function policyOf(overlap: Overlap): ScheduleOverlapPolicy {
  return overlap.toUpperCase().replace('-', '_') as ScheduleOverlapPolicy;
}

export function overlapOf(policy: ScheduleOverlapPolicy): Overlap {
  return OVERLAPS.find((overlap) => policyOf(overlap) === policy) ?? 'skip';
}

/** The settings in words, always in the same order. */
export function settingRows(settings: ScheduleSettings): [what: string, words: string][] {
  const { jitterMs, catchupWindowMs, pauseOnFailure } = settings;
  return [
    ['timing', wordsOf(settings.timing)],
    ['timezone', settings.timezone],
    ['start', settings.startAt ?? 'at once'],
    ['end', settings.endAt ?? 'never'],
    ['jitter', jitterMs === 0 ? 'none' : `up to ${formatDuration(jitterMs)}`],
    ['overlap', settings.overlap],
    ['catch-up window', formatDuration(catchupWindowMs)],
    ['pause on failure', pauseOnFailure ? 'yes' : 'no'],
    ['concurrency', String(settings.concurrency)],
    ['tolerance', toleranceText(settings.tolerate)],
    ['task queue', settings.taskQueue],
  ];
}

function wordsOf(timing: readonly Timing[]): string {
  return timing.map(timingText).join(' + ') || 'never';
}

function toleranceText(tolerate: Tolerance): string {
  // Somebody may have edited the schedule by hand.
  if (!isTolerance(tolerate)) return `not a tolerance: ${JSON.stringify(tolerate)}`;
  if (tolerate === null) return 'any number of failures';
  return 'items' in tolerate ? `${tolerate.items} failures` : `${tolerate.percent}% failures`;
}
