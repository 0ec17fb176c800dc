import { quote } from './text';

const UNIT_SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;
type Unit = keyof typeof UNIT_SECONDS;

/** So many in a unit of time, such as `5/s`, `30/m`, `90/h` or `100/d`. */
export type RateText = `${number}/${Unit}`;

/** One a day: what is slower is no limit but a stop, for which a batch is paused. */
const MIN_PER_SECOND = 1 / UNIT_SECONDS.d;

/** Far above what one task queue hands out; what is larger was meant to be something else. */
const MAX_PER_SECOND = 1_000_000;

/**
 * A rate in so many per second, or the reason why a text is none.
 *
 * A bare number is refused: whether `90` means a second or an hour is a guess that the service would pay for.
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

/** Agent services count by the hour: `300/h` is what was set, and not `5/m`. */
const PREFERRED: readonly Unit[] = ['s', 'h', 'm', 'd'];

/**
 * A rate for people, in the first unit in which it is a whole number: `5/s`, `90/h`. A server keeps rates as floats of 32
 * bits, so that six digits are what can be relied on.
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

function describe(value: unknown): string {
  return typeof value === 'string' ? quote(value) : `a value of type ${typeof value}`;
}
