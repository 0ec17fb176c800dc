import { quote } from './text';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Such as `500ms`, `30s`, `10m`, `24h` or `7d`. */
export type DurationText = `${number}${keyof typeof UNIT_MS}`;

/** Ten years. Longer timers of Temporal are not certain to work. */
export const MAX_DURATION_MS = 3_650 * UNIT_MS.d;

export function parseDuration(text: unknown): { ms: number } | { problem: string } {
  const form = /^(\d{1,20}(?:\.\d{1,20})?)(ms|s|m|h|d)$/;
  const read = valueOf(text, form, UNIT_MS, 'a duration', '"500ms", "30s", "10m", "24h"');
  if ('problem' in read) return read;
  const ms = Math.round(read.value);
  return ms > MAX_DURATION_MS ? { problem: `${quote(text)} is longer than 3650d` } : { ms };
}

/** A bare number is refused: `30` may mean seconds or milliseconds. */
function valueOf(
  text: unknown,
  form: RegExp,
  units: Readonly<Record<string, number>>,
  what: string,
  examples: string,
): { readonly value: number } | { readonly problem: string } {
  if (typeof text === 'number' || (typeof text === 'string' && /^\s*[-+]?\d+(\.\d+)?\s*$/.test(text)))
    return {
      problem: `${quote(text)} needs a unit (${Object.keys(units).join(', ')}), for example ${examples}`,
    };
  const [, number = '', unit = ''] = typeof text === 'string' ? (form.exec(text) ?? []) : [];
  const size = units[unit];
  if (size !== undefined) return { value: Number(number) * size };
  return { problem: `${quote(text)} is not ${what}; write a number with a unit, for example ${examples}` };
}

/** Exact, in the largest unit in which it is a whole number: `90s`, `36h`. */
export function durationText(ms: number): DurationText {
  const units = (Object.keys(UNIT_MS) as (keyof typeof UNIT_MS)[]).reverse();
  const unit = units.find((each) => ms % UNIT_MS[each] === 0) ?? 'ms';
  return ms === 0 ? '0s' : `${ms / UNIT_MS[unit]}${unit}`;
}

/** For people, rounded: `850ms`, `12s`, `3m 20s`, `2h 5m`, `4d 3h`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return inTwo(seconds, 60, 'm', 's');
  const minutes = Math.round(seconds / 60);
  if (minutes < 1_440) return inTwo(minutes, 60, 'h', 'm');
  const hours = Math.round(minutes / 60);
  return inTwo(hours, 24, 'd', 'h');
}

function inTwo(value: number, size: number, large: string, small: string): string {
  const rest = value % size;
  return `${Math.floor(value / size)}${large}${rest === 0 ? '' : ` ${rest}${small}`}`;
}

const PER_SECOND = { s: 1, m: 1 / 60, h: 1 / 3_600, d: 1 / 86_400 } as const;
type Unit = keyof typeof PER_SECOND;

/** Such as `5/s`, `30/m`, `90/h` or `100/d`. */
export type RateText = `${number}/${Unit}`;

/** Far above what one task queue can dispatch. */
const MAX_PER_SECOND = 1_000_000;

export function parseRate(text: unknown): { perSecond: number } | { problem: string } {
  const read = valueOf(text, /^(\d+(?:\.\d+)?)\/(s|m|h|d)$/, PER_SECOND, 'a rate', '"5/s", "30/m", "90/h"');
  if ('problem' in read) return read;
  const perSecond = read.value;
  // A slower rate would be a stop; to stop, pause the batch.
  if (perSecond < PER_SECOND.d)
    return { problem: `${quote(text)} is too low; the lowest rate is "1/d", and "off" removes a limit` };
  if (perSecond > MAX_PER_SECOND) return { problem: `${quote(text)} is too high; it is at most "1000000/s"` };
  return { perSecond };
}

/** Agent services count by the hour: `300/h`, not `5/m`. */
const PREFERRED: readonly Unit[] = ['s', 'h', 'm', 'd'];

/** In the first unit in which it is whole. Servers keep floats of 32 bits: six digits are reliable. */
export function formatRate(perSecond: number): RateText {
  const numberIn = (unit: Unit): number => Number((perSecond / PER_SECOND[unit]).toPrecision(6));
  const above = PREFERRED.filter((unit) => numberIn(unit) >= 1);
  const unit = above.find((each) => Number.isInteger(numberIn(each))) ?? above[0] ?? 'd';
  return `${numberIn(unit)}/${unit}`;
}
