import { formatDuration } from '../../contract/duration';

/** Over how long the rate is taken: long enough for turns of minutes, short enough to tell a change. */
const WINDOW_MS = 3 * 60_000;

/** A rate over less says nothing. */
const MIN_SPAN_MS = 5_000;

/** How fast the items of a batch settle, over the last minutes. Times are milliseconds since the epoch. */
export class Rate {
  private readonly samples: { readonly at: number; readonly settled: number }[] = [];

  add(at: number, settled: number): void {
    this.samples.push({ at, settled });
    while ((this.samples[0]?.at ?? at) < at - WINDOW_MS) this.samples.shift();
  }

  /** Items a minute; null while nobody can tell. */
  perMinute(): number | null {
    const first = this.samples[0];
    const last = this.samples.at(-1);
    if (first === undefined || last === undefined || last.at - first.at < MIN_SPAN_MS) return null;
    return ((last.settled - first.settled) * 60_000) / (last.at - first.at);
  }
}

/** How long so many items take, in words: `3m 20s left`; null where nobody can tell. */
export function timeLeft(items: number, perMinute: number | null): string | null {
  if (perMinute === null || perMinute === 0) return null;
  const seconds = Math.ceil((items / perMinute) * 60);
  return `${formatDuration(seconds * 1_000)} left`;
}

/** `0.4/min`, `42/min` */
export function rateText(perMinute: number): string {
  return `${perMinute < 10 ? perMinute.toFixed(1) : Math.round(perMinute)}/min`;
}
