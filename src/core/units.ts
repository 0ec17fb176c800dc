import { quote } from './text';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A number with a unit, such as `500ms`, `30s`, `10m`, `24h` or `7d`. */
export type DurationText = `${number}${keyof typeof UNIT_MS}`;

/** The longest duration: ten years. Longer timers of Temporal are not certain to work. */
const MAX_DURATION_MS = 3_650 * UNIT_MS.d;

/**
 * Milliseconds of a duration text, or why it is not a duration.
 *
 * A bare number is refused: `30` may mean seconds or milliseconds, and a wrong guess would show only later.
 */
export function parseDuration(text: unknown): { ms: number } | { problem: string } {
  if (typeof text === 'number' || (typeof text === 'string' && /^\s*[-+]?\d+(\.\d+)?\s*$/.test(text))) {
    return { problem: `${quote(text)} needs a unit, for example "30s" (units: ms, s, m, h, d)` };
  }
  const match = typeof text === 'string' ? /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) : null;
  if (match === null) {
    return {
      problem: `${describe(text)} is not a duration; write a number with a unit, for example "500ms", "30s", "10m", "24h"`,
    };
  }
  const ms = Math.round(Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]);
  if (ms > MAX_DURATION_MS) return { problem: `${describe(text)} is longer than 3650d` };
  return { ms };
}

/** The duration text of a number of milliseconds, exact, in the largest unit in which it is a whole number: `90s`, `36h`. */
export function durationText(ms: number): DurationText {
  const units = (Object.keys(UNIT_MS) as (keyof typeof UNIT_MS)[]).reverse();
  const unit = units.find((each) => ms % UNIT_MS[each] === 0) ?? 'ms';
  return ms === 0 ? '0s' : `${ms / UNIT_MS[unit]}${unit}`;
}

/** A duration for people, rounded: `850ms`, `12s`, `3m 20s`, `2h 5m`, `4d 3h`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return join(Math.floor(seconds / 60), 'm', seconds % 60, 's');
  const minutes = Math.round(seconds / 60);
  if (minutes < 1_440) return join(Math.floor(minutes / 60), 'h', minutes % 60, 'm');
  const hours = Math.round(minutes / 60);
  return join(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function join(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit} ${small}${smallUnit}`;
}

function describe(value: unknown): string {
  return typeof value === 'string' ? quote(value) : `a value of type ${typeof value}`;
}

const UNIT_SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;
type Unit = keyof typeof UNIT_SECONDS;

/** A number in a unit of time, such as `5/s`, `30/m`, `90/h` or `100/d`. */
export type RateText = `${number}/${Unit}`;

/** One a day: a slower rate would be a stop; to stop, pause the batch. */
const MIN_PER_SECOND = 1 / UNIT_SECONDS.d;

/** Far above what one task queue can dispatch; a larger number must be a mistake. */
const MAX_PER_SECOND = 1_000_000;

/**
 * A rate per second, or why a text is not a rate.
 *
 * A bare number is refused: `90` may mean a second or an hour, and a wrong guess would overload the service.
 */
export function parseRate(text: unknown): { perSecond: number } | { problem: string } {
  if (typeof text === 'number' || (typeof text === 'string' && /^\s*[-+]?\d+(\.\d+)?\s*$/.test(text))) {
    return { problem: `${quote(text)} needs a unit, e.g. "90/h" (units: s, m, h, d)` };
  }
  const match = typeof text === 'string' ? /^(\d+(?:\.\d+)?)\/(s|m|h|d)$/.exec(text) : null;
  if (match === null) {
    return {
      problem: `${describe(text)} is not a rate; write a number per unit of time, e.g. "5/s", "30/m", "90/h"`,
    };
  }
  const perSecond = Number(match[1]) / UNIT_SECONDS[match[2] as Unit];
  if (perSecond < MIN_PER_SECOND) {
    return { problem: `${describe(text)} is too low; the lowest rate is "1/d", and "off" removes a limit` };
  }
  if (perSecond > MAX_PER_SECOND)
    return { problem: `${describe(text)} is too high; it is at most "1000000/s"` };
  return { perSecond };
}

/** Agent services count by the hour, so `300/h` is shown rather than `5/m`. */
const PREFERRED: readonly Unit[] = ['s', 'h', 'm', 'd'];

/**
 * A rate for people, in the first unit in which it is a whole number: `5/s`, `90/h`. A server keeps rates as floats of 32
 * bits, so only six digits are reliable.
 */
export function formatRate(perSecond: number): RateText {
  const inUnits = PREFERRED.map((unit) => ({
    unit,
    number: Number((perSecond * UNIT_SECONDS[unit]).toPrecision(6)),
  }));
  const { number, unit } = inUnits.find((each) => each.number >= 1 && Number.isInteger(each.number)) ??
    inUnits.find((each) => each.number >= 1) ?? {
      number: Number((perSecond * UNIT_SECONDS.d).toPrecision(6)),
      unit: 'd',
    };
  return `${number}/${unit}`;
}
