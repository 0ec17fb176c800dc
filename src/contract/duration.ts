import { quote } from './text';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A number with a unit, such as `500ms`, `30s`, `10m`, `24h` or `7d`. */
export type DurationText = `${number}${keyof typeof UNIT_MS}`;

/** The maximum duration is ten years, because longer Temporal timers may not work. */
export const MAX_DURATION_MS = 3_650 * UNIT_MS.d;

const EXAMPLES = '"500ms", "30s", "10m", "24h"';

/** Parses a duration such as `30s`. @returns the duration in milliseconds, or the problem as the end of a sentence */
export function parseDuration(text: unknown): { ms: number } | { problem: string } {
  // A bare number is rejected, because `30` may mean seconds or milliseconds.
  if (typeof text === 'number' || (typeof text === 'string' && /^\s*[-+]?\d+(\.\d+)?\s*$/.test(text))) {
    const units = Object.keys(UNIT_MS).join(', ');
    return { problem: `${quote(text)} needs a unit (${units}), for example ${EXAMPLES}` };
  }
  const form = /^(\d{1,20}(?:\.\d{1,20})?)(ms|s|m|h|d)$/;
  const [, number, unit] = typeof text === 'string' ? (form.exec(text) ?? []) : [];
  if (number === undefined)
    return {
      problem: `${quote(text)} is not a duration; write a number with a unit, for example ${EXAMPLES}`,
    };
  const ms = Math.round(Number(number) * UNIT_MS[unit as keyof typeof UNIT_MS]);
  return ms > MAX_DURATION_MS ? { problem: `${quote(text)} is longer than 3650d` } : { ms };
}

/** Returns the exact duration in the largest unit in which the duration is a whole number, such as `90s` or `36h`. */
export function durationText(ms: number): DurationText {
  const units = (Object.keys(UNIT_MS) as (keyof typeof UNIT_MS)[]).reverse();
  const unit = units.find((each) => ms % UNIT_MS[each] === 0) ?? 'ms';
  return ms === 0 ? '0s' : `${ms / UNIT_MS[unit]}${unit}`;
}

/** Returns a rounded duration for messages, such as `850ms`, `12s`, `3m 20s`, `2h 5m` or `4d 3h`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return formatTwoUnits(seconds, 60, 'm', 's');
  const minutes = Math.round(seconds / 60);
  if (minutes < 1_440) return formatTwoUnits(minutes, 60, 'h', 'm');
  const hours = Math.round(minutes / 60);
  return formatTwoUnits(hours, 24, 'd', 'h');
}

function formatTwoUnits(value: number, size: number, large: string, small: string): string {
  const rest = value % size;
  return `${Math.floor(value / size)}${large}${rest === 0 ? '' : ` ${rest}${small}`}`;
}
