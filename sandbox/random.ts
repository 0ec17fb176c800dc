/** A source of numbers from 0 up to, but not including, 1. */
export type Random = () => number;

/**
 * Returns a Mulberry32 generator. The same seed gives the same sequence on every machine, so that a failed run can be repeated. The
 * numbers are not suitable for secrets.
 */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
