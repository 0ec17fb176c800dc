import { quote } from './text';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A number with a unit, such as `500ms`, `30s`, `10m`, `24h` or `7d`. */
export type DurationText = `${number}${keyof typeof UNIT_MS}`;

/** The longest duration that is accepted: ten years. Temporal's timers take no more than that with certainty. */
const MAX_DURATION_MS = 3_650 * UNIT_MS.d;

/**
 * Milliseconds of a duration text, or the reason why it is none.
 *
 * A bare number is refused: whether `30` means seconds or milliseconds is a guess that would be paid for later.
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
